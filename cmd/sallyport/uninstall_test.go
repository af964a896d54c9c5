// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUninstallReportsEveryProblemInItsFlags(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want []string
	}{
		{"nothing says which server", nil, []string{"--service or --authority-secret is required", "--force"}},
		{"several at once", []string{"--static-manifests-dir", "here", "--all", "--conversion", "--configuration-name", "A"},
			[]string{"--all requires", "absolute path", "--crd must be used together", "--configuration-name"}},
		{"a definition without --conversion", []string{"--service", "a/b", "--crd", "Tabs"}, []string{"--crd must be used together", `--crd "Tabs"`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := sallyport(t, append([]string{"uninstall"}, tc.args...)...)
			if got.status != exitError {
				t.Errorf("status %d", got.status)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.stderr, want) {
					t.Errorf("nothing of %q in %q", want, got.stderr)
				}
			}
		})
	}
}

func TestUninstallOfStaticManifestsNeedsNoCluster(t *testing.T) {
	sallyport(t, "uninstall", "--static-manifests-dir", filepath.Join(t.TempDir(), "none")).want(t, exitOK, "", "")
}

func TestUninstallRemovesTheStaticManifestsOfSeveralFolders(t *testing.T) {
	args, want := []string{"uninstall", "--configuration-name", "web"}, ""
	for _, folder := range []string{t.TempDir(), t.TempDir()} {
		path := filepath.Join(folder, "mutating", "web.static.k8s.io.yaml")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("metadata:\n  labels: {app.kubernetes.io/managed-by: sallyport}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		args, want = append(args, "--static-manifests-dir", folder), want+path+" deleted\n"
	}
	sallyport(t, args...).want(t, exitOK, want, "")
	sallyport(t, args...).want(t, exitOK, "", "")
}
