// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"
)

const code = `package p

// Thing is a thing,
// on two lines.
//
// +kubebuilder:object:root=true
type Thing struct {
	Inlined ` + "`json:\",inline\"`" + `
	// Port of it | or [Kind].
	Port   *int              ` + "`json:\"port,omitempty\"`" + `
	Kinds  map[string][]Kind ` + "`json:\"kinds\"`" + `
	Hidden string            ` + "`json:\"-\"`" + `
	inner  string
}

// Inlined has fields of its own.
type Inlined struct{}

// Kind is a kind.
type Kind string

const (
	First  Kind = "First"
	Second Kind = "Second"
)
`

func parse(t *testing.T, code string) map[string]*goType {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{"p.go": code, "p_test.go": "package p\n\ntype Tested struct{}\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	types, err := parsePackage(folder)
	if err != nil {
		t.Fatal(err)
	}
	return types
}

func TestRender(t *testing.T) {
	types := parse(t, code)
	if types["Tested"] != nil {
		t.Error("a type of a test is in the reference")
	}
	got, err := render(types, section{folder: "p", types: []string{"Thing"}, required: true})
	if err != nil {
		t.Fatal(err)
	}
	const want = `
Thing is a thing, on two lines.

| field | type | description |
|---|---|---|
| | [Inlined](#inlined) | its fields, inline |
| ` + "`port`" + ` | integer | Port of it \| or Kind. |
| ` + "`kinds`" + ` (required) | map to list of [Kind](#kind) |  |

### Inlined

Inlined has fields of its own.

### Kind

Kind is a kind.

One of ` + "`First`, `Second`" + `.
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWhatIsNotThereIsAnError(t *testing.T) {
	types := parse(t, code)
	if _, err := render(types, section{types: []string{"Nothing"}}); err == nil {
		t.Error("a type that is not there is no error")
	}
	if err := run(t.TempDir(), os.Stderr); err == nil {
		t.Error("a folder without the types is not an error")
	}
}
