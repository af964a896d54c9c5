// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
)

// module is what the go command knows of a module: its packages, and all that they import, from
// the export data of the compiler.
type module struct {
	path    string
	imports types.Importer
}

// open asks for the packages in the folders of a module. They have to compile.
func open(root string, folders []string) (*module, error) {
	patterns := make([]string, len(folders))
	for i, folder := range folders {
		patterns[i] = "./" + folder
	}
	list := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Export,Module"}, patterns...)...)
	list.Dir = root
	var problems bytes.Buffer
	list.Stderr = &problems
	output, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(list.Args, " "), err, problems.String())
	}
	m := &module{}
	exports := map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p struct {
			ImportPath, Export string
			Module             *struct {
				Path string
				Main bool
			}
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		// The module that the others are below: go.work has several.
		if p.Module != nil && p.Module.Main && (m.path == "" || len(p.Module.Path) < len(m.path)) {
			m.path = p.Module.Path
		}
	}
	m.imports = importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("the stable core does not import package %s", path)
		}
		return os.Open(exports[path])
	})
	return m, nil
}

// importPath is that of the package in a folder.
func (m *module) importPath(folder string) string {
	if folder == "." {
		return m.path
	}
	return m.path + "/" + folder
}

// folder is where a package of the module is, relative to the module.
func (m *module) folder(path string) (string, bool) {
	if path == m.path {
		return ".", true
	}
	return strings.CutPrefix(path, m.path+"/")
}
