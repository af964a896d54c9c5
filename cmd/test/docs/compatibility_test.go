// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// table returns the cells of the rows below the first heading of a table that begins so.
func table(t *testing.T, document, heading string) [][]string {
	t.Helper()
	_, rest, ok := strings.Cut(read(t, document), "\n"+heading)
	if !ok {
		t.Fatalf("%s has no table that begins with %q", document, heading)
	}
	var rows [][]string
	for _, line := range strings.Split(rest, "\n")[2:] {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	return rows
}

// TestEachPromiseHasATest: that the tests exist, TestTestsThatDocumentsNameExist checks.
func TestEachPromiseHasATest(t *testing.T) {
	rows := table(t, filepath.Join(root, "docs/compatibility.md"), "| what | promise | since | held by |")
	if len(rows) < 10 {
		t.Errorf("only %d promises", len(rows))
	}
	named, since := regexp.MustCompile("^`Test[A-Z]\\w+(/[^`]+)?`$"), regexp.MustCompile(`^v\d+\.\d+\.0$`)
	for _, row := range rows {
		if len(row) != 4 || row[1] == "" || !since.MatchString(row[2]) || !named.MatchString(row[3]) {
			t.Errorf("a promise needs what it is about, since which minor release, and its test: %q", row)
		}
	}
	for _, record := range []string{"flags", "exits", "metrics", "configuration", "values", "fields"} {
		if text := read(t, filepath.Join(root, "cmd/sallyport/testdata/promised", record+".txt")); strings.Count(text, "\n") < 5 {
			t.Errorf("the record of %s is empty", record)
		}
	}
}

// TestVersionsOfOthersAreThoseOfTheModules compares the table of versions with go.mod of the library, which has
// the oldest, with that of the product, which has the newest, and with the control planes of the tests.
func TestVersionsOfOthersAreThoseOfTheModules(t *testing.T) {
	module := func(path string) *modfile.File {
		t.Helper()
		file, err := modfile.Parse(path, []byte(read(t, filepath.Join(root, path))), nil)
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	version := func(file *modfile.File, path string) string {
		t.Helper()
		for _, required := range file.Require {
			if required.Mod.Path == path {
				return required.Mod.Version
			}
		}
		t.Fatalf("%s does not require %s", file.Module.Mod.Path, path)
		return ""
	}
	minor := func(version string) string { return version[:strings.LastIndexByte(version, '.')] }
	library, product := module("go.mod"), module("cmd/go.mod")
	newest := strings.Replace(version(product, "k8s.io/client-go"), "v0.", "1.", 1)
	entries, err := os.ReadDir(filepath.Join(root, "test/controlplane/versions"))
	if err != nil {
		t.Fatal(err)
	}
	older := []string{newest}
	for _, entry := range entries {
		older = append(older, entry.Name())
	}
	const controllerRuntime = "sigs.k8s.io/controller-runtime"
	want := [][]string{
		{"Kubernetes, as a cluster", minor(slices.Min(older)), minor(newest)},
		{"Kubernetes' libraries, for an author", version(library, "k8s.io/client-go"), version(product, "k8s.io/client-go")},
		{"controller-runtime, for an author", version(library, controllerRuntime), version(product, controllerRuntime)},
		{"Go", library.Go.Version, ""},
	}
	rows := table(t, filepath.Join(root, "docs/compatibility.md"), "| of | oldest | newest |")
	for i, row := range want {
		if len(rows) <= i || !slices.Equal(rows[i][:3], row) {
			t.Errorf("docs/compatibility.md: want %q in row %d of %q", row, i, rows)
		}
	}
	if len(rows) != len(want) {
		t.Errorf("the table has %d rows, and %d are compared", len(rows), len(want))
	}
}
