// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestServeBuildsWithoutEachRow: the package builds without a row of the table and without the files of that row,
// which are the one with its function and those that begin with the name of that one. So nothing else of serve knows
// a ready-made webhook.
func TestServeBuildsWithoutEachRow(t *testing.T) {
	const table = "table.go"
	data, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\t\t(\w+)\(\),\n`).FindAllStringSubmatch(string(data), -1)
	if len(rows) != len(Builtins()) {
		t.Fatalf("%s has %d rows in the form of a call, and %d webhooks", table, len(rows), len(Builtins()))
	}
	sources := sourceFiles(t)
	var all []string
	for i, row := range rows {
		files := filesOf(sources, row[1])
		if len(files) == 0 {
			t.Fatalf("no file has %s", row[1])
		}
		all = append(all, files...)
		t.Run(Builtins()[i].Name, func(t *testing.T) {
			t.Parallel()
			buildWithout(t, files, table, strings.Replace(string(data), row[0], "", 1))
		})
	}
	t.Run("all", func(t *testing.T) {
		t.Parallel()
		none := string(data)
		for _, row := range rows {
			none = strings.Replace(none, row[0], "", 1)
		}
		buildWithout(t, all, table, none)
	})
}

// sourceFiles are the files of the package, parsed, without tests.
func sourceFiles(t *testing.T) map[string]*ast.File {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if files[name], err = parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// filesOf are the files of the row that a function makes.
func filesOf(sources map[string]*ast.File, function string) (files []string) {
	stem := ""
	for name, file := range sources {
		if slices.ContainsFunc(file.Decls, func(d ast.Decl) bool {
			f, ok := d.(*ast.FuncDecl)
			return ok && f.Recv == nil && f.Name.Name == function
		}) {
			stem = strings.TrimSuffix(name, ".go")
		}
	}
	for name := range sources {
		if stem != "" && (name == stem+".go" || strings.HasPrefix(name, stem+"_")) {
			files = append(files, name)
		}
	}
	return files
}

// buildWithout builds the package without some of its files, and with another table.
func buildWithout(t *testing.T, files []string, table, rows string) {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), table)
	replace := map[string]string{filepath.Join(folder, table): other}
	for _, file := range files {
		replace[filepath.Join(folder, file)] = "" // is not there
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "overlay.json")
	for file, text := range map[string]string{other: rows, path: string(overlay)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", path, ".").CombinedOutput(); err != nil {
		t.Errorf("without %s: %v\n%s", strings.Join(files, ", "), err, out)
	}
}
