// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const help = `Usage:
  sallyport serve [flags]

Server:
      --secure-port port                 port to serve webhooks on with TLS; 0 takes a free
                                         one (default 9443)
      --http2                            offer HTTP/2
  -v, --verbosity level     level of detail

Flags:
  -h, --help   help for serve
`

func TestWhatHelpSaysOfAFlagIsOneLine(t *testing.T) {
	flags := parseHelp(help)
	for name, want := range map[string]string{
		"secure-port": "port to serve webhooks on with TLS; 0 takes a free one (default 9443)",
		"http2":       "offer HTTP/2",
		"verbosity":   "level of detail",
	} {
		if flags[name] != want {
			t.Errorf("--%s: got %q, want %q", name, flags[name], want)
		}
	}
}

const code = `package p

// Thing is a thing,
// on two lines.
//
// +kubebuilder:object:root=true
type Thing struct {
	Inlined ` + "`json:\",inline\"`" + `
	// Port of it | or [Kind].
	Port   *int              ` + "`json:\"port,omitempty\" flag:\"secure-port\"`" + `
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
	got, err := render(types, section{folder: "api/p", types: []string{"Thing"}}, parseHelp(help))
	if err != nil {
		t.Fatal(err)
	}
	const want = `
Thing is a thing, on two lines.

| field | type | says |
|---|---|---|
| | [Inlined](#inlined) | its fields, inline |
| ` + "`port`" + ` | integer | Port of it \| or Kind. ` + "`--secure-port`" + `: port to serve webhooks on with TLS; 0 takes a free one (default 9443) |
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
	if _, err := render(types, section{types: []string{"Nothing"}}, nil); err == nil {
		t.Error("a type that is not there is no error")
	}
	if _, err := render(types, section{types: []string{"Thing"}}, map[string]string{"other": ""}); err == nil || !strings.Contains(err.Error(), "--secure-port") {
		t.Errorf("a flag that is not there: %v", err)
	}
	if err := run(t.TempDir(), strings.NewReader(""), os.Stderr); err == nil {
		t.Error("help without flags is no error")
	}
}
