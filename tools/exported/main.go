// SPDX-License-Identifier: Apache-2.0

// Command exported counts the exported identifiers that a user of the module can name: the
// constants, variables, types and functions of its packages, the exported methods of their
// exported types, and the methods of their exported interfaces. Fields of structs do not count,
// nor what is promoted from an embedded type.
//
// It leaves out what nobody imports as a library (internal, api, test, examples, tools and cmd,
// commands elsewhere, testdata, modules that go.work does not have), tests and generated code.
//
// Usage: exported [-most N] FOLDER
//
// It prints a line for each package, and fails if there are more than N in all.
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	most := flag.Int("most", 0, "fail if there are more; 0 is no limit")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: exported [-most N] FOLDER")
		os.Exit(2)
	}
	if err := run(os.Stdout, flag.Arg(0), *most); err != nil {
		fmt.Fprintln(os.Stderr, "exported:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, root string, most int) error {
	counts, err := count(root)
	if err != nil {
		return err
	}
	total := 0
	for _, folder := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(out, "%5d %s\n", counts[folder], folder)
		total += counts[folder]
	}
	fmt.Fprintf(out, "%5d exported identifiers\n", total)
	switch {
	case total == 0:
		return fmt.Errorf("%s has no package with exported identifiers", root)
	case most > 0 && total > most:
		return fmt.Errorf("%d exported identifiers, at most %d: unexport identifiers that no user needs, or move them below internal/", total, most)
	}
	return nil
}

// notLibrary are folders of the root that hold no packages for users.
var notLibrary = []string{"api", "cmd", "examples", "test", "tools"}

// count returns the number of exported identifiers by the package's folder, relative to root.
func count(root string) (map[string]int, error) {
	counts := map[string]int{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if relative != "." && !mayHoldLibrary(name, relative) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if n := inFile(file); n > 0 {
			counts[filepath.ToSlash(filepath.Dir(relative))] += n
		}
		return nil
	})
	return counts, err
}

func mayHoldLibrary(name, relative string) bool {
	base := filepath.Base(relative)
	if base == "internal" || base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || slices.Contains(notLibrary, relative) {
		return false
	}
	return !outside(name, relative)
}

// outside reports whether a folder is that of a module which is not developed together with the others.
func outside(name, relative string) bool {
	if _, err := os.Stat(filepath.Join(name, "go.mod")); err != nil {
		return false
	}
	work, err := os.ReadFile(filepath.Join(strings.TrimSuffix(filepath.ToSlash(name), filepath.ToSlash(relative)), "go.work"))
	return err != nil || !slices.Contains(strings.Fields(string(work)), "./"+filepath.ToSlash(relative))
}

func inFile(file *ast.File) int {
	if file.Name.Name == "main" || ast.IsGenerated(file) {
		return 0
	}
	n := 0
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || receiver(d.Recv.List[0].Type).IsExported()) {
				n++
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				n += inSpec(spec)
			}
		}
	}
	return n
}

func inSpec(spec ast.Spec) int {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		return exportedOf(s.Names)
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return 0
		}
		n := 1
		if i, ok := s.Type.(*ast.InterfaceType); ok {
			for _, method := range i.Methods.List {
				n += exportedOf(method.Names)
			}
		}
		return n
	default:
		return 0
	}
}

func exportedOf(names []*ast.Ident) int {
	n := 0
	for _, name := range names {
		if name.IsExported() {
			n++
		}
	}
	return n
}

// receiver returns the name of a method's type, without pointer and type parameters.
func receiver(expression ast.Expr) *ast.Ident {
	switch e := expression.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.ParenExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e
	default:
		return ast.NewIdent("_")
	}
}
