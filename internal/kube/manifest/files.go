// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Stdin is the path that means stdin.
const Stdin = "-"

// StdinOnce returns an error if more than one of the paths is stdin.
func StdinOnce(paths []string) error {
	if n := len(slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return path != Stdin })); n > 1 {
		return errors.New("- is named more than once: stdin can be read only once")
	}
	return nil
}

// Read reads the objects of files, and of the YAML and JSON files below folders in the order of
// their names. It continues after a problem. The error reports all problems with file and line.
// A path without documents is an error; an empty list counts as a document.
func Read(paths []string, stdin io.Reader) ([]*Object, error) {
	var all []*Object
	var errs []error
	for _, path := range paths {
		objects, err := ReadPath(path, stdin)
		all, errs = append(all, objects...), append(errs, err)
	}
	return all, errors.Join(errs...)
}

// ReadPath reads the objects of a file, of the files in a folder, or of stdin (-).
func ReadPath(path string, stdin io.Reader) ([]*Object, error) {
	files := []string{path}
	if path == "" {
		return nil, errors.New("the name of a file is empty")
	}
	if info, err := os.Stat(path); path != Stdin && err == nil && info.IsDir() {
		if files, err = manifestsIn(path); err != nil {
			return nil, err
		}
	}
	var all []*Object
	var errs []error
	documents := 0
	for _, file := range files {
		name, data, err := readFile(file, stdin)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		objects, n, err := Parse(name, data)
		all, errs = append(all, objects...), append(errs, err)
		documents += n
	}
	err := errors.Join(errs...)
	if err == nil && documents == 0 {
		if path == Stdin {
			path = "stdin"
		}
		err = fmt.Errorf("%s holds no object", path)
	}
	return all, err
}

func readFile(path string, stdin io.Reader) (name string, data []byte, err error) {
	if path == Stdin {
		data, err = io.ReadAll(stdin)
		return "stdin", data, err
	}
	data, err = os.ReadFile(path)
	return path, data, err
}

// manifestsIn finds the files in a folder. It skips hidden ones: they belong to tools, such as
// .github, or are duplicates, such as ..data in a mounted ConfigMap.
func manifestsIn(folder string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path != folder && strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
		case !entry.IsDir() && slices.Contains(Extensions, strings.TrimPrefix(filepath.Ext(path), ".")):
			files = append(files, path)
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s holds no .yaml, .yml or .json file", folder)
	}
	return files, err
}

// Extensions are the extensions of manifest files.
var Extensions = []string{"yaml", "yml", "json"}
