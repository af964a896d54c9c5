// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"
)

// fileName is that of the recorded API of the package in a folder.
func fileName(folder string) string {
	if folder == "." {
		folder = "sallyport"
	}
	return strings.ReplaceAll(folder, "/", "_") + ".txt"
}

func save(root string, files map[string]string) error {
	directory := filepath.Join(root, recorded)
	if err := os.RemoveAll(directory); err != nil {
		return err
	}
	if err := os.MkdirAll(directory, 0o777); err != nil {
		return err
	}
	for folder, source := range files {
		source = "// folder: " + folder + "\n" + source
		if err := os.WriteFile(filepath.Join(directory, fileName(folder)), []byte(source), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// read returns the recorded API by the folder of the package.
func read(root string) (map[string]string, error) {
	names, err := filepath.Glob(filepath.Join(root, recorded, "*.txt"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no API is recorded in %s: run make record-api", recorded)
	}
	files := map[string]string{}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		first, source, _ := strings.Cut(string(content), "\n")
		folder, ok := strings.CutPrefix(first, "// folder: ")
		if !ok {
			return nil, fmt.Errorf("%s does not begin with its folder: run make record-api", name)
		}
		files[folder] = source
	}
	return files, nil
}

// compare returns what the packages of the module have incompatibly changed since the files
// were recorded, and what those in the folders have beyond them.
func (m *module) compare(folders []string, files map[string]string) (incompatible, added []string, err error) {
	for _, folder := range folders {
		if _, ok := files[folder]; !ok {
			return nil, nil, fmt.Errorf("no API is recorded for %s: run make record-api", m.importPath(folder))
		}
	}
	described, err := m.describe(folders)
	if err != nil {
		return nil, nil, err
	}
	before := &past{module: m, files: files, packages: map[string]*types.Package{}}
	after := &past{module: m, files: described, packages: map[string]*types.Package{}}
	for _, folder := range slices.Sorted(maps.Keys(files)) {
		path := m.importPath(folder)
		old, err := before.Import(path)
		if err != nil {
			return nil, nil, err
		}
		now, err := m.imports.Import(path)
		if err != nil {
			incompatible = append(incompatible, fmt.Sprintf("%s: removed, or no longer part of the stable core", path))
			continue
		}
		for _, change := range apidiff.Changes(old, now).Changes {
			if !change.Compatible {
				incompatible = append(incompatible, path+": "+change.Message)
			}
		}
		if !slices.Contains(folders, folder) {
			continue
		}
		// What is new is what would be recorded.
		if now, err = after.Import(path); err != nil {
			return nil, nil, err
		}
		for _, change := range apidiff.Changes(old, now).Changes {
			if change.Compatible {
				added = append(added, path+": "+change.Message)
			}
		}
	}
	return incompatible, added, nil
}

// past imports packages of the module as they were recorded or described, and all others as they
// are: a newer release of a dependency is no change of ours.
type past struct {
	module   *module
	files    map[string]string
	packages map[string]*types.Package
}

func (p *past) Import(path string) (*types.Package, error) {
	if found := p.packages[path]; found != nil {
		return found, nil
	}
	folder, _ := p.module.folder(path)
	source, ok := p.files[folder]
	if !ok {
		return p.module.imports.Import(path)
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, filepath.Join(recorded, fileName(folder)), source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, declaration := range file.Decls {
		if f, ok := declaration.(*ast.FuncDecl); ok {
			f.Body = &ast.BlockStmt{}
		}
	}
	var problems []error
	config := types.Config{Importer: p, IgnoreFuncBodies: true, Error: func(err error) { problems = append(problems, err) }}
	p.packages[path], err = config.Check(path, files, []*ast.File{file}, nil)
	if err != nil {
		return nil, fmt.Errorf("the recorded API of %s: %w", path, errors.Join(problems...))
	}
	return p.packages[path], nil
}
