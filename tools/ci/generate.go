// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// generator writes files from others.
type generator struct {
	name     string
	generate func(*tree) error
	from     []string // folders and files; what is generated is in them, or with them
}

var generators = []generator{
	{name: "definitions", generate: (*tree).definitions, from: []string{"api", "examples/bookstore", "examples/crontab", "examples/kubebuilder", "config/crd"}},
	{name: "templates", generate: (*tree).templates, from: []string{"cmd/internal/live/console"}},
	{name: "reference", generate: (*tree).reference, from: []string{
		"api", "cmd/internal/serve", "cmd/internal/poddefault", "cmd/internal/webhooks", "docs/api.md",
		"registration", "serving", "internal/hosting/logging", "internal/cli/setting", "settings.go",
	}},
}

// fromTools decides, too, what all generate.
var fromTools = []string{"tools", "go.work", "cmd/go.mod", "api/go.mod"}

// generate generates all: deep copies, CustomResourceDefinitions, what config/ and charts/ have of them and of the
// rights, the console's pages, docs/api.md, and the help of flags.
func (t *tree) generate() error {
	if err := t.inOrder((*tree).definitions, (*tree).templates); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"./cmd/sallyport", "-run", "Generated|EveryDefinitionIsIn|WhatTheChartHas", "-update"},
		{"./config/crd", "-run", "Generated", "-update"},
	} {
		if said, err := t.combined("", append([]string{"go", "test"}, args...)...); err != nil {
			return fmt.Errorf("%s\n%w", said, err)
		}
	}
	return t.reference()
}

// definitions writes deep copies and definitions from the types.
func (t *tree) definitions() error {
	header := "object:headerFile=" + filepath.Join(t.top, "tools/boilerplate.go.txt")
	for _, in := range []struct {
		dir  string
		args []string
	}{
		{args: []string{header, "crd:generateEmbeddedObjectMeta=true", "paths=./api/...", "output:crd:dir=config/crd"}},
		{args: []string{header, "crd", "paths=./examples/crontab/...", "output:crd:dir=examples/crontab/config/crd"}},
		{args: []string{
			header, "crd", "webhook", "paths=./examples/kubebuilder/...",
			"output:crd:dir=examples/kubebuilder/config/crd", "output:webhook:dir=examples/kubebuilder/config/webhook",
		}},
		{dir: operatorModule, args: []string{header, "crd", "paths=./api/...", "output:crd:dir=config/crd"}},
	} {
		if err := t.run(in.dir, append([]string{"go", "tool", "controller-gen"}, in.args...)...); err != nil {
			return err
		}
	}
	definitions, err := filepath.Glob(filepath.Join(t.top, "config/crd/*_*.yaml"))
	if err != nil {
		return err
	}
	if err := t.run("", append([]string{"go", "-C", "tools", "run", "./crdtrim"}, definitions...)...); err != nil {
		return err
	}
	_, err = t.output("", "go", "test", "./cmd/internal/poddefault/validate", "-run", "GeneratedSchemas", "-update")
	return err
}

// templates writes the console's pages from their templates.
func (t *tree) templates() error {
	return t.run("", "go", "tool", "templ", "generate", "-log-level=warn", "-path", "cmd/internal/live/console")
}

// reference writes docs/api.md and the help of flags from the types.
func (t *tree) reference() error {
	for _, of := range []struct{ what, file string }{{"reference", "docs/api.md"}, {"help", "internal/cli/setting/zz_generated.help.go"}} {
		text, err := t.output("", "go", "-C", "tools", "run", "./apireference", of.what, t.top)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(t.top, of.file), []byte(text+"\n"), 0o644); err != nil { //nolint:gosec // of the repository
			return err
		}
	}
	return nil
}

func (t *tree) stamp(of generator) string { return filepath.Join(t.top, "bin", "."+of.name) }

// generated generates again, in a copy, what is generated, and compares. It leaves out what has not changed since
// it was found to be right. What unit tests generate, under -update, they compare themselves: also the part of
// config/crd that is from a table of poddefault.
func (t *tree) generated() error {
	var changed []generator
	for _, g := range generators {
		fresh, err := t.fresh(g)
		if err != nil {
			return err
		}
		if !fresh {
			changed = append(changed, g)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	copied, err := os.MkdirTemp("", "sallyport-generated-")
	if err != nil {
		return err
	}
	err = t.generatedIn(copied, changed)
	return errors.Join(err, os.RemoveAll(copied))
}

func (t *tree) generatedIn(copied string, changed []generator) error {
	if err := copyTree(copied, t.top); err != nil {
		return err
	}
	there := *t
	there.top = copied
	for _, g := range changed {
		t.say("generating %s", g.name)
		if err := g.generate(&there); err != nil {
			return err
		}
	}
	stale, err := different(copied, t.top)
	if err != nil {
		return err
	}
	if len(stale) > 0 {
		return fmt.Errorf("not up to date, run make generate:\n%s", strings.Join(stale, "\n"))
	}
	if err := os.MkdirAll(filepath.Join(t.top, "bin"), 0o750); err != nil {
		return err
	}
	for _, g := range changed {
		if err := os.WriteFile(t.stamp(g), nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// fresh tells whether nothing that decides what is generated has changed since it was found to be right.
func (t *tree) fresh(g generator) (bool, error) {
	stamp, err := os.Stat(t.stamp(g))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, from := range slices.Concat(g.from, fromTools) {
		newest, err := newest(filepath.Join(t.top, from))
		if err != nil || newest.After(stamp.ModTime()) {
			return false, err
		}
	}
	return true, nil
}

// newest returns when a file of a folder was changed last.
func newest(of string) (time.Time, error) {
	var last time.Time
	err := filepath.WalkDir(of, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
		return err
	})
	return last, err
}

// walkFiles calls visit with the name of each file in a folder, relative to it, but for what git or builds keep.
func walkFiles(of string, visit func(name string) error) error {
	return fs.WalkDir(os.DirFS(of), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".git" || name == "bin": // .git is a file in a worktree
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.Type().IsRegular():
			return visit(name)
		}
		return nil
	})
}

func copyTree(to, from string) error {
	return walkFiles(from, func(name string) error {
		data, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o600)
	})
}

// different returns the files of a folder that another does not have, or has otherwise.
func different(in, from string) ([]string, error) {
	var names []string
	err := walkFiles(in, func(name string) error {
		a, err := os.ReadFile(filepath.Join(in, name))
		if err != nil {
			return err
		}
		b, err := os.ReadFile(filepath.Join(from, name))
		if errors.Is(err, fs.ErrNotExist) || err == nil && !bytes.Equal(a, b) {
			names = append(names, name)
			return nil
		}
		return err
	})
	return names, err
}
