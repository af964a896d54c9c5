// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"embed"
	"errors"
	"fmt"
	"go/format"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// File is one to be written.
type File struct {
	Path    string // with slashes, from the root of the project
	Content []byte
}

//go:embed templates
var templates embed.FS

// view is what templates see.
type view struct {
	*Project
	Version string // of files below api/
}

// Hub is the version that is stored.
func (v view) Hub() string { return v.Versions[len(v.Versions)-1] }

// Spokes are the other ones.
func (v view) Spokes() []string { return v.Versions[:len(v.Versions)-1] }

// ByName are all versions in the order of controller-gen.
func (v view) ByName() []string { return slices.Sorted(slices.Values(v.Versions)) }

func (v view) IsHub() bool      { return v.Version == v.Hub() }
func (v view) Lower() string    { return strings.ToLower(v.Kind) }
func (v view) Namespaced() bool { return v.Scope == ScopeNamespaced }

// OddPlural tells whether the plural is not the one that converters guess.
func (v view) OddPlural() bool { return v.Plural != v.guessedPlural() }

// values are what templates name.
func (v view) values() map[string]any {
	return map[string]any{
		"Module": v.Module, "Name": v.Name, "Group": v.Group, "Kind": v.Kind, "Plural": v.Plural, "Versions": v.Versions,
		"Sallyport": v.Sallyport, "Replace": v.Replace, "Version": v.Version, "Hub": v.Hub(), "Spokes": v.Spokes(), "ByName": v.ByName(),
		"IsHub": v.IsHub(), "Lower": v.Lower(), "Namespaced": v.Namespaced(), "OddPlural": v.OddPlural(),
	}
}

// renamed are the files whose names templates cannot have, or depend on the project.
func (v view) renamed(name string) string {
	switch name {
	case "gitignore", "dockerignore":
		return "." + name
	case "config/crd/definition.yaml":
		return "config/crd/" + v.Group + "_" + v.Plural + ".yaml"
	}
	name = strings.Replace(name, "api/version/", "api/"+v.Version+"/", 1)
	return strings.Replace(name, "/kind_", "/"+v.Lower()+"_", 1)
}

// Files are those of the project, ordered by path. They complete it; see [Project.Complete] for
// the error.
func (p *Project) Files() ([]File, error) {
	if err := p.Complete(); err != nil {
		return nil, err
	}
	functions := map[string]templateFunction{
		"title": func(args []any) (any, error) {
			s := args[0].(string)
			return strings.ToUpper(s[:1]) + s[1:], nil
		},
	}
	var files []File
	err := fs.WalkDir(templates, "templates", func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := templates.ReadFile(at)
		if err != nil {
			return err
		}
		one, err := parseTemplate(at, string(text), functions)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(at, "templates/"), ".tmpl")
		if len(p.Versions) == 1 && strings.Contains(path.Base(name), "conversion") {
			return nil
		}
		versions := []string{""}
		if strings.HasPrefix(name, "api/version/") {
			versions = p.Versions
		}
		for _, version := range versions {
			file, err := render(one, at, name, view{p, version})
			if err != nil {
				return err
			}
			files = append(files, file)
		}
		return nil
	})
	slices.SortStableFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, err
}

func render(t *templateSet, at, name string, v view) (File, error) {
	text, err := t.execute(at, v.values())
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", at, err)
	}
	file := File{Path: v.renamed(name), Content: []byte(text)}
	if path.Ext(name) != ".go" {
		return file, nil
	}
	formatted, err := format.Source(file.Content)
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", file.Path, err)
	}
	file.Content = formatted
	return file, nil
}

// Target says where to write files, and how.
type Target struct {
	Folder string // made if it is not there
	DryRun bool   // writes nothing
	Force  bool   // replaces files that exist
}

// Install writes the files and prints which, and what to do next. Unless the target forces it,
// no file is written if one exists already; the error names all that do. Nothing is written
// outside of the folder, wherever symbolic links in it lead.
func (t Target) Install(out io.Writer, files []File, next string) error {
	if err := existing(t.Folder, files); err != nil && !t.Force {
		return err
	}
	if !t.DryRun {
		if err := write(t.Folder, files, t.Force); err != nil {
			return err
		}
	}
	what := "wrote"
	if t.DryRun {
		what = "would write"
	}
	var text strings.Builder
	for _, file := range files {
		_, _ = fmt.Fprintf(&text, "%s %s\n", what, filepath.Join(t.Folder, filepath.FromSlash(file.Path)))
	}
	if !t.DryRun {
		_, _ = fmt.Fprintf(&text, "next, in %s: %s\n", t.Folder, next)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// existing reports the files that are there already. A folder that is not there has none.
func existing(folder string, files []File) error {
	var there []string
	for _, file := range files {
		_, err := os.Lstat(filepath.Join(folder, filepath.FromSlash(file.Path)))
		switch {
		case err == nil:
			there = append(there, file.Path)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	if len(there) == 0 {
		return nil
	}
	return fmt.Errorf("%s holds files of these names, and nothing is written: %s; choose another --dir, or replace them by --overwrite", folder, strings.Join(there, ", "))
}

func write(folder string, files []File, force bool) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	for _, file := range files {
		name := filepath.FromSlash(file.Path)
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		opened, err := root.OpenFile(name, flags, 0o644)
		if err != nil {
			return err
		}
		_, err = opened.Write(file.Content)
		if err := errors.Join(err, opened.Close()); err != nil {
			return err
		}
	}
	return nil
}
