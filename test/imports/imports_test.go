// SPDX-License-Identifier: Apache-2.0

// Package imports tests who may import whom. The table is wings.yaml.
package imports

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/test/golden"
)

const module = "github.com/sallyport-io/sallyport"

// A wing is a part of the house: packages that may import each other, and packages of the wings
// that it names ("*" is all).
type wing struct {
	Name    string   `json:"name"`
	Folders []string `json:"folders"`
	For     string   `json:"for"`
	Imports []string `json:"imports"`
}

// A library is modules of others that only packages in some folders may import.
type library struct {
	Modules []string `json:"modules"`
	For     string   `json:"for"`
	Folders []string `json:"folders"`
}

type house struct {
	Wings     []wing    `json:"wings"`
	Libraries []library `json:"libraries"`
}

func readHouse(t *testing.T) house {
	t.Helper()
	data, err := os.ReadFile("wings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var h house
	if err := yaml.UnmarshalStrict(data, &h); err != nil {
		t.Fatalf("wings.yaml: %v", err)
	}
	return h
}

// of returns the wing with the longest folder that contains the package, or nil.
func (h *house) of(pkg string) *wing {
	var found *wing
	longest := -1
	for i := range h.Wings {
		for _, folder := range h.Wings[i].Folders {
			if in(pkg, folder) && len(folder) > longest {
				longest, found = len(folder), &h.Wings[i]
			}
		}
	}
	return found
}

// in reports whether a package is in a folder; "." is the root package alone.
func in(pkg, folder string) bool {
	return pkg == folder || folder != "." && strings.HasPrefix(pkg, folder+"/")
}

// TestImportTable compares the imports of all packages with the table: each package is in a wing,
// and no import goes against the table.
func TestImportTable(t *testing.T) {
	h := readHouse(t)
	for i, w := range h.Wings {
		for _, name := range w.Imports {
			if lower := slices.IndexFunc(h.Wings[:i], func(w wing) bool { return w.Name == name }); lower < 0 && name != "*" {
				t.Errorf("%s imports %s, which is not a wing below it", w.Name, name)
			}
		}
	}
	for _, pkg := range list(t) {
		from := ofOurs(pkg.ImportPath)
		importer := h.of(from)
		if importer == nil {
			t.Errorf("%s is in no wing", from)
			continue
		}
		for _, imported := range pkg.Imports {
			if imported != module && !strings.HasPrefix(imported, module+"/") {
				continue
			}
			to := ofOurs(imported)
			w := h.of(to)
			if w != nil && w != importer && !slices.Contains(importer.Imports, "*") && !slices.Contains(importer.Imports, w.Name) {
				t.Errorf("%s imports %s: %s may import %s, not %s", from, to, importer.Name, strings.Join(importer.Imports, ", "), w.Name)
			}
		}
	}
}

// TestLibrariesStayInTheirFolders: what only some packages may import of others is imported nowhere else, and
// in each folder of the table.
func TestLibrariesStayInTheirFolders(t *testing.T) {
	for _, l := range readHouse(t).Libraries {
		used := map[string]bool{}
		for _, pkg := range list(t) {
			from := ofOurs(pkg.ImportPath)
			for _, imported := range pkg.Imports {
				if !slices.ContainsFunc(l.Modules, func(m string) bool { return in(imported, m) }) {
					continue
				}
				if i := slices.IndexFunc(l.Folders, func(folder string) bool { return in(from, folder) }); i >= 0 {
					used[l.Folders[i]] = true
				} else {
					t.Errorf("%s imports %s, which is for %s: take what %s has of it", from, imported, l.For, strings.Join(l.Folders, ", "))
				}
			}
		}
		for _, folder := range l.Folders {
			if !used[folder] {
				t.Errorf("nothing in %s imports %s: leave it out of the table", folder, strings.Join(l.Modules, ", "))
			}
		}
	}
}

func ofOurs(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}

// TestGeneratedImportTable: CONTRIBUTING.md has the table as it is in wings.yaml.
func TestGeneratedImportTable(t *testing.T) {
	const begin, end = "<!-- generated from test/imports/wings.yaml: go test ./test/imports -run Generated -update -->\n", "<!-- end -->\n"
	h := readHouse(t)
	var b strings.Builder
	b.WriteString("\n| wing | folders | what it is for | may import |\n|---|---|---|---|\n")
	for _, w := range h.Wings {
		folders := make([]string, len(w.Folders))
		for i, folder := range w.Folders {
			folders[i] = "`" + folder + "`"
			if folder == "." {
				folders[i] = "`sallyport`"
			}
		}
		imports := strings.Join(w.Imports, ", ")
		switch imports {
		case "":
			imports = "–"
		case "*":
			imports = "all"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", w.Name, strings.Join(folders, ", "), w.For, imports)
	}
	b.WriteString("\n")
	file := filepath.Join("..", "..", "CONTRIBUTING.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("CONTRIBUTING.md has no %q and %q", begin, end)
	}
	golden.Equal(t, file, before+begin+b.String()+end+after)
}

// light are packages that a webhook author can take without the stacks of others,
// named by prefixes of what must not be in their import closure.
var light = []string{"jsonpatch", "admission", "conversion", "internal/wire", "serving"}

// interfaces is a package of controller-runtime that holds two interfaces and imports
// nothing but apimachinery.
const interfaces = "sigs.k8s.io/controller-runtime/pkg/conversion"

var heavy = []string{
	"sigs.k8s.io/controller-runtime", "k8s.io/client-go/informers", "k8s.io/client-go/tools/cache",
	"k8s.io/apiserver", "k8s.io/cloud-provider",
}

type goPackage struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func TestLightPackagesStayLight(t *testing.T) {
	seen := 0
	for _, pkg := range list(t) {
		name := strings.TrimPrefix(pkg.ImportPath, module+"/")
		if !slices.Contains(light, name) {
			continue
		}
		seen++
		for _, dep := range pkg.Deps {
			for _, prefix := range heavy {
				if dep != interfaces && (dep == prefix || strings.HasPrefix(dep, prefix+"/")) {
					t.Errorf("%s needs %s", name, dep)
				}
			}
		}
	}
	if seen != len(light) {
		t.Errorf("found %d of %v", seen, light)
	}
}

// KEP-2699 wants the controller managers' own stack: who adopts package cloud, and so
// internal/hosting, gets no other. And nobody else gets k8s.io/cloud-provider.
func TestCloudKeepsToTheStackOfControllerManagers(t *testing.T) {
	seen := false
	for _, pkg := range list(t) {
		name := strings.TrimPrefix(pkg.ImportPath, module+"/")
		keeps := name == "cloud" || name == "internal/hosting"
		if name == "cloud" {
			seen = true
		}
		mayCloud := name == "cloud" || strings.HasPrefix(name, "examples/cloud-controller-manager") || strings.HasPrefix(name, "test/") || strings.HasPrefix(name, "cmd/test/")
		for _, dep := range pkg.Deps {
			switch {
			case keeps && dep != interfaces && strings.HasPrefix(dep, "sigs.k8s.io/controller-runtime/"):
				t.Errorf("%s needs %s", name, dep)
			case !mayCloud && strings.HasPrefix(dep, "k8s.io/cloud-provider"):
				t.Errorf("%s needs %s", name, dep)
			}
		}
	}
	if !seen {
		t.Error("there is no package cloud")
	}
}

func list(t *testing.T) []goPackage {
	t.Helper()
	packages, err := listed()
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

// listed asks the go command, which knows what is built, once for all tests. It keeps the result
// of a test until something changes that the test itself has read, so every folder is read here.
var listed = sync.OnceValues(func() ([]goPackage, error) {
	err := filepath.WalkDir("../..", func(_ string, entry os.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "bin" || entry.Name() == "testdata") {
			return filepath.SkipDir
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", module+"/...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var packages []goPackage
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg goPackage
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		packages = append(packages, pkg)
	}
	if len(packages) < 10 {
		return nil, fmt.Errorf("go list found %d packages", len(packages))
	}
	return packages, nil
})
