// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/mod/modfile"
)

// The control plane, Helm and kustomize have most of Kubernetes in common with the product.
// The build cache has it once as long as all that it is compiled with has the same version.
func TestModulesThatShareTheBuildCacheHaveTheSameVersions(t *testing.T) {
	versions := requirements(t, "../../cmd/go.mod")
	for _, folder := range []string{"test/controlplane", "tools/deploy"} {
		shared := 0
		for path, version := range requirements(t, filepath.Join("../..", folder, "go.mod")) {
			if ours, ok := versions[path]; ok {
				shared++
				if version != ours {
					t.Errorf("%s: %s has %s in cmd/go.mod, and %s here; run: go -C %s get %s@%s (or raise that of cmd/go.mod), and go mod tidy", folder, path, ours, version, folder, path, ours)
				}
			}
		}
		if shared < 50 {
			t.Errorf("%s has only %d modules in common with cmd/go.mod", folder, shared)
		}
	}
}

// requirements returns the versions that a go.mod requires, by the paths of modules.
func requirements(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := modfile.Parse(file, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, r := range parsed.Require {
		out[r.Mod.Path] = r.Mod.Version
	}
	return out
}
