// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const (
	module = "github.com/sallyport-io/sallyport"

	// onAPIServer ends the names of tests that need an API server; those in cmd/test/e2e need one, too. The
	// others need none: `make check` sets no KUBEBUILDER_ASSETS.
	onAPIServer = "OnARealAPIServer"
	// upgrading takes a quarter of an hour, and history that a shallow clone lacks: `make upgrade` and
	// `make nightly` run it.
	upgrading = "UpgradeAndBackUnderLoad"

	// providerModule needs a cloud provider's client libraries, which take minutes to compile: `make provider`.
	providerModule = "./examples/cloud-controller-manager-gce"
	// operatorModule is an operator as its author has it, with tests on an API server.
	operatorModule = "./examples/bookstore"
	// browserTests are left out where there is no browser.
	browserTests = "./cmd/test/e2e/console"
	// aloneTests measure failed and slow creates, so nothing else may compete for the machine: other tests
	// yield to them.
	aloneTests = "./cmd/test/e2e/faults"
)

var (
	// longest are tested first, so that nothing long is left alone at the end.
	longest = []string{
		"./cmd/test/docs", "./cmd/test/e2e", "./cmd/test/e2e/install", "./cmd/internal/poddefault/status", "./cmd/internal/install/scaffold",
		"./internal/install/storagemigration", "./cmd/test/bench", ".", "./cmd/test/e2e/dataset", "./examples/crontab", "./cmd/sallyport",
		browserTests,
	}
	// library is what its authors import, and what that is made of.
	library = []string{
		".", "./admission/...", "./conversion/...", "./jsonpatch/...", "./serving/...", "./registration/...", "./controllerruntime/...",
		"./sallyporttest/...", "./internal/...",
	}
	// raced are the packages that `make test` tries under the race detector, but for those whose tests need
	// what takes long to compile a second time: a client of an API server, CEL, gRPC.
	raced = []string{"./admission", "./conversion", "./jsonpatch", "./serving", "./internal/...", "./cmd/internal/..."}
	heavy = []string{
		"k8s.io/client-go/kubernetes", "k8s.io/client-go/tools/cache", "k8s.io/apiserver/pkg/server",
		"sigs.k8s.io/controller-runtime/pkg/client", "github.com/google/cel-go/cel", "google.golang.org/grpc",
	}
	// someProperties are those that `make test` tries; `make properties` tries all.
	someProperties = []string{"./cmd/internal/poddefault", "./cmd/test/specification"}
	// adopted are projects that use controller-runtime. The modules of JobSet and Kueue have their tests.
	adopted = []string{
		"new@v0.23.3", "new@v0.24.1", "sigs.k8s.io/controller-runtime@v0.25.2", "sigs.k8s.io/jobset@v0.12.0", "sigs.k8s.io/kueue@v0.17.0",
	}
)

// foldersWith returns the folders of the product, as `go list` takes them, that have a test which contains the
// text.
func (t *tree) foldersWith(text string) ([]string, error) {
	found := map[string]bool{}
	err := fs.WalkDir(os.DirFS(t.top), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "bin" || entry.Name() == ".git" || "./"+name == operatorModule):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		data, err := os.ReadFile(filepath.Join(t.top, name))
		if bytes.Contains(data, []byte(text)) {
			found[folder(path.Dir(name))] = true
		}
		return err
	})
	return slices.Sorted(maps.Keys(found)), err
}

// folder is how `go list` takes one.
func folder(name string) string {
	if name == "." {
		return name
	}
	return "./" + name
}

// apiserverFolders are those that have a test which needs an API server, the longest first.
func (t *tree) apiserverFolders() ([]string, error) {
	others, err := t.foldersWith(onAPIServer + "(t *testing.T)")
	return slices.Concat(longest, []string{"./cmd/test/e2e/..."}, others), err
}

// list returns the import paths of packages, in their order and each once.
func (t *tree) list(args ...string) ([]string, error) {
	printed, err := t.output("", append([]string{"go", "list"}, args...)...)
	var once []string
	for line := range strings.Lines(printed) {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(once, line) {
			once = append(once, line)
		}
	}
	return once, err
}

// light returns those of the raced packages whose tests do not depend on what is heavy.
func (t *tree) light() ([]string, error) {
	lines, err := t.list(slices.Concat([]string{"-test", "-f", `{{.ImportPath}}{{range .Deps}} {{.}}{{end}}`}, raced)...)
	var packages []string
	for _, line := range lines {
		fields := strings.Fields(line)
		name, isTest := strings.CutSuffix(fields[0], ".test")
		if isTest && !slices.ContainsFunc(fields[1:], func(dependency string) bool { return slices.Contains(heavy, dependency) }) {
			packages = append(packages, name)
		}
	}
	slices.Sort(packages)
	return packages, err
}

// moduleFolders returns those of all modules of the repository, sorted.
func (t *tree) moduleFolders() ([]string, error) {
	var found []string
	err := fs.WalkDir(os.DirFS(t.top), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "bin"):
			return fs.SkipDir
		case entry.Name() == "go.mod":
			found = append(found, folder(path.Dir(name)))
		}
		return nil
	})
	slices.Sort(found)
	return found, err
}

// workModules returns the folders of the modules that go.work develops together. Their versions of what they
// have in common are the highest that one asks for, so a command for another module sets GOWORK=off.
func (t *tree) workModules() ([]string, error) {
	lines, err := t.list("-m", "-f", "{{.Dir}}")
	if err != nil {
		return nil, err
	}
	for i, dir := range lines {
		inside, err := filepath.Rel(t.top, dir)
		if err != nil {
			return nil, err
		}
		lines[i] = folder(filepath.ToSlash(inside))
	}
	return lines, nil
}

// otherModules returns the folders of the modules outside of go.work that have packages.
func (t *tree) otherModules() ([]string, error) {
	all, err := t.moduleFolders()
	if err != nil {
		return nil, err
	}
	work, err := t.workModules()
	if err != nil {
		return nil, err
	}
	var others []string
	for _, m := range all {
		if slices.Contains(work, m) || m == providerModule {
			continue
		}
		if t.hasPackages(m) {
			others = append(others, m)
		}
	}
	return others, nil
}

// hasPackages is false for a module that only pins versions of programs.
func (t *tree) hasPackages(dir string) bool {
	cmd := t.alone().command(dir, "go", "list", "./...")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, nil
	return t.start(cmd) == nil && out.Len() > 0
}

// olderReleases of Kubernetes that the product is tried with.
func (t *tree) olderReleases() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(t.top, "test/controlplane/versions"))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}
