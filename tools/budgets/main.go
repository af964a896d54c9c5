// SPDX-License-Identifier: Apache-2.0

// Command budgets checks how large packages, types and files are: a package has at most 3,000 lines
// and 25 files, a type at most 30 methods, a file at most 400 lines. Tests, generated code, examples and
// tools are not counted, nor modules that go.work does not have.
//
// Usage: budgets [-write] EXCEPTIONS FOLDER
//
// EXCEPTIONS is a YAML file of what may be larger, and how large: a name, as the command prints it, and a
// number. An exception that is larger than necessary is a problem too, so that the file only shrinks. It may have
// at most the number of rows that its field "most" says. With -write, rows get the
// numbers of what is smaller now. What has grown stays a problem.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

func main() {
	write := flag.Bool("write", false, "write down what is smaller now")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: budgets [-write] EXCEPTIONS FOLDER")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), flag.Arg(1), *write); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Budgets.
const (
	packageLines = 3000
	packageFiles = 25
	typeMethods  = 30
	fileLines    = 400
)

type exceptions struct {
	Most int            `json:"most"`
	Rows map[string]int `json:"rows"`
}

func run(file, root string, write bool) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var known exceptions
	if err := yaml.UnmarshalStrict(data, &known); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	sizes, err := measure(root)
	if err != nil {
		return err
	}
	if write {
		if data, err = yaml.Marshal(shrunk(sizes, known)); err != nil {
			return err
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			return err
		}
	}
	return check(sizes, known)
}

// shrunk takes away what no exception needs.
func shrunk(sizes map[string]size, known exceptions) exceptions {
	for name, may := range known.Rows {
		switch s, ok := sizes[name]; {
		case !ok || s.is <= s.limit:
			delete(known.Rows, name)
		case s.is < may:
			known.Rows[name] = s.is
		}
	}
	known.Most = min(known.Most, len(known.Rows))
	return known
}

// A size is how large something is, and how large it may be.
type size struct{ is, limit int }

// check compares sizes by name with their limits and the exceptions.
func check(sizes map[string]size, known exceptions) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		s := sizes[name]
		may, excepted := known.Rows[name]
		switch {
		case s.is > max(s.limit, may):
			errs = append(errs, fmt.Errorf("%s: %d, at most %d: divide it", name, s.is, max(s.limit, may)))
		case excepted && s.is <= s.limit:
			errs = append(errs, fmt.Errorf("%s: %d needs no exception: remove its row", name, s.is))
		case excepted && s.is < may:
			errs = append(errs, fmt.Errorf("%s: %d is smaller than its exception: write it down", name, s.is))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known.Rows)) {
		if _, ok := sizes[name]; !ok {
			errs = append(errs, fmt.Errorf("%s: there is no such thing: remove its row", name))
		}
	}
	if len(known.Rows) > known.Most {
		errs = append(errs, fmt.Errorf("%d exceptions, at most %d", len(known.Rows), known.Most))
	}
	return errors.Join(errs...)
}

// measure returns the sizes of packages, types and files below root.
func measure(root string) (map[string]size, error) {
	sizes := map[string]size{}
	add := func(name string, n, limit int) { sizes[name] = size{sizes[name].is + n, limit} }
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		if entry.IsDir() {
			if relative != "." && !counted(name, relative) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, data, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil || ast.IsGenerated(parsed) {
			return err
		}
		folder, lines := filepath.ToSlash(filepath.Dir(relative)), bytes.Count(data, []byte("\n"))
		add("lines of file "+relative, lines, fileLines)
		add("lines of package "+folder, lines, packageLines)
		add("files of package "+folder, 1, packageFiles)
		for _, declaration := range parsed.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok && f.Recv != nil {
				add("methods of type "+folder+"."+receiver(f.Recv.List[0].Type), 1, typeMethods)
			}
		}
		return nil
	})
	return sizes, err
}

// counted reports whether a folder has code of the product.
func counted(name, relative string) bool {
	base := filepath.Base(relative)
	if base == "testdata" || base == "bin" || strings.HasPrefix(base, ".") || slices.Contains([]string{"examples", "test", "tools", "cmd/test"}, relative) {
		return false
	}
	return !outside(name, relative)
}

// outside reports whether a folder is that of a module which is not developed together with the others.
func outside(name, relative string) bool {
	if _, err := os.Stat(filepath.Join(name, "go.mod")); err != nil {
		return false
	}
	work, err := os.ReadFile(filepath.Join(strings.TrimSuffix(filepath.ToSlash(name), relative), "go.work"))
	return err != nil || !slices.Contains(strings.Fields(string(work)), "./"+relative)
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	default:
		return "?"
	}
}
