// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/registration"
)

func TestUninstallNamesEveryMistakeInItsFlags(t *testing.T) {
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

func TestUninstallAsksBeforeItRemoves(t *testing.T) {
	deleted := []registration.Removal{{Object: "secret/a", Action: registration.Deleted}, {Object: "b", Action: registration.Left, Why: "not ours"}}
	for _, tc := range []struct {
		name    string
		planned []registration.Removal
		answer  string
		want    bool
		says    string
	}{
		{"yes", deleted, "y\n", true, "secret/a deleted (dry run)\nb left: not ours\nContinue? [y/N] "},
		{"yes in full", deleted, "Yes\n", true, "Continue?"},
		{"only return", deleted, "\n", false, "nothing was removed"},
		{"no answer", deleted, "", false, "nothing was removed"},
		{"something else", deleted, "maybe\n", false, "nothing was removed"},
		{"nothing to remove", deleted[1:], "", true, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out strings.Builder
			got, err := confirm(tc.planned, strings.NewReader(tc.answer), &out)
			if err != nil || got != tc.want || !strings.Contains(out.String(), tc.says) || (tc.says == "" && out.String() != "") {
				t.Errorf("got %v, %v, %q", got, err, out.String())
			}
		})
	}
}
