// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// before is a module with a stable core of one package, which names a type of another package
// and, by an alias, one below internal/.
var before = map[string]string{
	"go.mod": "module example.com/library\n\ngo 1.26\n",
	"core/core.go": `package core

import (
	"context"

	"example.com/library/internal/settings"
	"example.com/library/options"
)

const Limit = 3

var ErrLate error

type Settings = settings.Settings

type Option func(*hidden)

type hidden struct{ seen []string }

type Handler interface {
	Handle(ctx context.Context, name string) error
}

type Server[T any] struct {
	Options options.Options
	Wants   func(T) bool
	started bool
}

func (s *Server[T]) Run(ctx context.Context) error { return nil }

func New[T any](options ...Option) (*Server[T], error) { return nil, nil }
`,
	"internal/settings/settings.go": "package settings\n\ntype Settings struct{ Port int }\n\ntype Plan struct{}\n\nfunc (Settings) Plan() Plan { return Plan{} }\n",
	"options/options.go":            "package options\n\ntype Options struct{ Name string }\n\nfunc Unnamed() {}\n",
}

// write writes the files, changed by pairs of old and new text.
func write(t *testing.T, root string, changes ...string) {
	t.Helper()
	replaced := 0
	for name, content := range before {
		for i := 0; i < len(changes); i += 2 {
			replaced += strings.Count(content, changes[i])
			content = strings.ReplaceAll(content, changes[i], changes[i+1])
		}
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if replaced < len(changes)/2 {
		t.Fatalf("%q: not in the module", changes)
	}
}

func TestWhatBreaksCallersIsReported(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		changes []string
		want    string // of what is printed
		added   bool   // it breaks nobody
	}{
		"nothing changed": {},
		"the signature of a function changed": {
			changes: []string{"func New[T any](options ...Option)", "func New[T any](name string, options ...Option)"}, want: "New: changed from",
		},
		"a function was removed": {changes: []string{"func New[T any]", "func newServer[T any]"}, want: "New: removed"},
		"a method was removed":   {changes: []string{") Run(", ") run("}, want: "Run: removed"},
		"a type of a result changed": {
			changes: []string{"(ctx context.Context) error { return nil }", "(ctx context.Context) {}"}, want: "Run: changed from",
		},
		"an interface wants another method": {changes: []string{"name string) error\n", "name string) error\n\tClose()\n"}, want: "Handler.Close: added"},
		"a constant has another value":      {changes: []string{"Limit = 3", "Limit = 4"}, want: "Limit: value changed from 3 to 4"},
		"a struct cannot be compared any more": {
			changes: []string{"type Options struct{ Name string", "type Options struct{ names []string; Name string"}, want: "old is comparable, new is not",
		},
		"a field behind an alias for an internal type": {changes: []string{"Port int", "Port string"}, want: "Settings.Port: changed from int to string"},
		"a field of a type that a signature names":     {changes: []string{"Name string }", "Title string }"}, want: "Options.Name: removed"},
		"a function was added":                         {changes: []string{"const Limit", "func Added() {}\n\nconst Limit"}, want: "not recorded yet: example.com/library/core: Added: added", added: true},
		"a field was added":                            {changes: []string{"started bool", "started bool\n\tAdded bool"}, want: "Server.Added: added", added: true},
		"a method that nobody outside can call": {
			changes: []string{"func (Settings) Plan() Plan { return Plan{} }", "func (Settings) Plan() Plan { return Plan{} }\n\nfunc (Settings) Other() Plan { return Plan{} }"},
		},
		"what is not exported":                        {changes: []string{"seen []string", "unseen []string"}},
		"what only other packages of the module call": {changes: []string{"type Plan struct{}", "type Plan struct{ A int }", "func (Settings) Plan() Plan { return Plan{} }", ""}},
		"another package, where the core names nothing": {
			changes: []string{"func Unnamed() {}", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			write(t, root)
			core := []string{"core"}
			if err := record(nil, root, core); err != nil {
				t.Fatal(err)
			}
			write(t, root, test.changes...)
			var out bytes.Buffer
			err := check(&out, root, core)
			if incompatible := test.want != "" && !test.added; incompatible != (err != nil) {
				t.Errorf("incompatible should be %v: %v\n%s", incompatible, err, &out)
			}
			if !strings.Contains(out.String(), test.want) || test.want == "" && out.Len() > 0 {
				t.Errorf("it prints %q, want %q", &out, test.want)
			}
			if err != nil && !strings.Contains(err.Error(), "make record-api") {
				t.Errorf("the error does not say what to do: %v", err)
			}
			if err := record(nil, root, core); err != nil {
				t.Fatal(err)
			}
			out.Reset()
			if err := check(&out, root, core); err != nil || out.Len() > 0 {
				t.Errorf("after recording it: %v\n%s", err, &out)
			}
		})
	}
}

func TestWhatCannotBeComparedIsAnError(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(t *testing.T, root string)
		want   string
	}{
		"no record": {func(t *testing.T, root string) { remove(t, filepath.Join(root, recorded)) }, "no API is recorded"},
		"a package of the core without one": {
			func(t *testing.T, root string) { remove(t, filepath.Join(root, recorded, "core.txt")) }, "no API is recorded for example.com/library/core",
		},
		"a module that does not compile": {func(t *testing.T, root string) { write(t, root, "const Limit = 3", "const Limit = undefined") }, "undefined"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			write(t, root)
			if err := record(nil, root, []string{"core"}); err != nil {
				t.Fatal(err)
			}
			test.change(t, root)
			if err := check(&bytes.Buffer{}, root, []string{"core"}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// The record is that of the repository: make test runs this.
func TestTheStableCoreIsAsItWasRecorded(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := check(&out, "../..", stable); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
	t.Logf("%s", &out)
}

// Each package for authors is either listed as part of the stable core, or says that it is
// experimental.
func TestEachPublicPackageSaysWhatIsPromised(t *testing.T) {
	t.Parallel()
	statement, err := os.ReadFile("../../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	list := exec.Command("go", "list", "-f", "{{.Name}}\t{{.ImportPath}}\t{{.Doc}}", "work")
	list.Dir = "../.."
	output, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := read("../..")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(output)) {
		fields := strings.SplitN(strings.TrimSpace(line), "\t", 3)
		m := &module{path: "github.com/sallyport-io/sallyport"}
		folder, ours := m.folder(fields[1])
		first, _, _ := strings.Cut(folder, "/")
		if !ours || fields[0] == "main" || slices.Contains([]string{"api", "cmd", "examples", "internal", "test"}, first) || strings.Contains(folder, "/internal/") {
			continue
		}
		if seen[folder] = true; !strings.Contains(string(statement), "`"+fields[0]+"`") && !strings.Contains(string(statement), "`"+folder+"`") {
			t.Errorf("docs/compatibility.md does not say what is promised of %s", folder)
		}
		if files[folder] == "" && slices.Contains(stable, folder) {
			t.Errorf("the API of %s is not recorded", folder)
		}
		source, err := exec.Command("go", "-C", "../..", "doc", "./"+folder).Output()
		if err != nil {
			t.Fatal(err)
		}
		if experimental := bytes.Contains(source, []byte("Experimental:")); experimental == slices.Contains(stable, folder) {
			t.Errorf("%s: experimental in its comment is %v", folder, experimental)
		}
	}
	for _, folder := range stable {
		if !seen[folder] {
			t.Errorf("there is no package %s; there are %v", folder, slices.Sorted(maps.Keys(seen)))
		}
	}
}
