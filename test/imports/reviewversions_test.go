// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestReviewVersionsComeFromOnePlace: no other file has the versions of reviews as literals, so that
// a new one is added in one file. Tests, examples and tools say what they mean.
func TestReviewVersionsComeFromOnePlace(t *testing.T) {
	const place = "internal/wire/reviewversion/reviewversion.go"
	literals := []string{
		`"v1beta1"`, `"admission.k8s.io/v1"`, `"admission.k8s.io/v1beta1"`, `"apiextensions.k8s.io/v1beta1"`,
	}
	const root = "../.."
	found := 0
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		folder := filepath.ToSlash(strings.TrimPrefix(name, root+string(filepath.Separator)))
		if entry.IsDir() {
			_, module := os.Stat(filepath.Join(name, "go.mod"))
			if name != root && (module == nil || strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" ||
				slices.Contains([]string{"test", "cmd/test", "examples", "tools"}, folder)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && slices.Contains(literals, literal.Value) {
				if found++; folder != place {
					t.Errorf("%s has %s: take it from package reviewversion", files.Position(literal.Pos()), literal.Value)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Errorf("%s does not have the versions: this test looks for nothing", place)
	}
}
