// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/test/lab"
)

// A project is vetted, its tests pass, and what is generated in it is as it was written. It is
// built from the module cache alone.
func TestProjectsOnARealAPIServer(t *testing.T) {
	top, err := lab.Top()
	if err != nil {
		t.Fatal(err)
	}
	if err := lab.CheckAssets(os.Getenv("KUBEBUILDER_ASSETS"), "etcd", "kube-apiserver"); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		project Project
		unit    []string
	}{
		"several versions": {
			Project{Module: "github.com/me/bookstore", Kind: "Book", Versions: []string{"v1", "v1alpha1", "v1beta1"}, Scope: ScopeNamespaced},
			[]string{"make", "unit"},
		},
		"one version of a cluster's": {
			Project{Module: "example.com/fleet/v2", Kind: "Resources", Versions: []string{"v2beta1"}, Group: "fleet.example.org", Plural: "manyresources", Scope: ScopeCluster},
			[]string{"go", "vet", "./..."}, // the tests of `make unit` are in `make test` too
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &test.project
			p.Replace = top
			files := filesOf(t, p)
			folder := t.TempDir()
			if err := (Target{Folder: folder}).Install(&bytes.Buffer{}, files, ""); err != nil {
				t.Fatal(err)
			}
			sums(t, top, folder)
			before := contents(t, folder)
			for _, args := range [][]string{{"make", "generate"}, test.unit, {"make", "test"}, {"make", "build"}} {
				command := exec.CommandContext(t.Context(), args[0], args[1:]...)
				command.Dir = folder
				// `make unit` vets all, which has been done for the libraries; `go test` has its own part.
				command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod -vet=off -ldflags=-w -trimpath -tags=grpcnotrace", "GOPROXY=off", "GOSUMDB=off", "GOWORK=off")
				out, err := command.CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %v\n%s", args, err, out)
				}
			}
			after := contents(t, folder)
			for _, path := range slices.Sorted(maps.Keys(before)) {
				if !strings.HasSuffix(path, "go.mod") && !strings.HasSuffix(path, "go.sum") && before[path] != after[path] {
					t.Errorf("make generate changes %s to\n%s", path, after[path])
				}
			}
			for _, kind := range []string{"Namespace", "CustomResourceDefinition", "ClusterRole", "Service", "Deployment"} {
				if !strings.Contains(after["config/manifests.yaml"], "kind: "+kind+"\n") {
					t.Errorf("make generate prints no %s:\n%s", kind, after["config/manifests.yaml"])
				}
			}
		})
	}
}

// sums gives a project the checksums of this repository, and its complete list of what the tools
// need: `make tidy` would ask the network for them.
func sums(t *testing.T, top, folder string) {
	t.Helper()
	for name, from := range map[string]string{"go.sum": "cmd/go.sum", "tools/go.mod": "tools/go.mod", "tools/go.sum": "tools/go.sum"} {
		data, err := os.ReadFile(filepath.Join(top, from))
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// contents are all files of a folder but those that are built.
func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if entry != nil && entry.Name() == "bin" {
				return fs.SkipDir
			}
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(folder, path)
		out[filepath.ToSlash(name)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
