// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestInitWritesAProjectOnceAndSaysWhatIsNext(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "bookstore")
	args := []string{"init", "github.com/me/bookstore", "--kind", "Book", "--versions", "v1alpha1,v1", "--replace", ".", "--dir", folder}
	if printed := sallyport(t, append(args, "--dry-run")...).wantOK(t); !strings.Contains(printed, "would write "+filepath.Join(folder, "main.go")+"\n") {
		t.Errorf("printed\n%s", printed)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("a dry run makes the folder: %v", err)
	}
	printed := sallyport(t, args...).wantOK(t)
	if !strings.Contains(printed, "wrote "+filepath.Join(folder, "api", "v1", "book_types.go")+"\n") || !strings.Contains(printed, "\nnext, in "+folder+": make tidy unit") {
		t.Errorf("printed\n%s", printed)
	}
	if module, err := os.ReadFile(filepath.Join(folder, "go.mod")); err != nil || !strings.Contains(string(module), "replace github.com/sallyport-io/sallyport => .\n") {
		t.Errorf("go.mod is\n%s, %v", module, err)
	}
	sallyport(t, args...).wantError(t, folder+" holds files of these names", "api/v1/book_types.go", "--overwrite")
	sallyport(t, append(args, "--overwrite")...).wantOK(t)
}

func TestInitWritesDefinitionsIntoAProjectThatExists(t *testing.T) {
	const kubebuilder = "../../examples/kubebuilder"
	if printed := sallyport(t, "init", "--from", kubebuilder, "--dry-run").wantOK(t); printed != "would write "+filepath.Join(kubebuilder, "internal", "definitions", "webhooks.go")+"\n" {
		t.Errorf("printed\n%s", printed)
	}
	folder := t.TempDir()
	if printed := sallyport(t, "init", "--from", kubebuilder, "--dir", folder).wantOK(t); !strings.Contains(printed, "wrote "+filepath.Join(folder, "internal", "definitions", "webhooks.go")+"\n") {
		t.Errorf("printed\n%s", printed)
	}
	sallyport(t, "init", "--from", kubebuilder, "--dir", folder).wantError(t, "internal/definitions/webhooks.go", "--overwrite")
	sallyport(t, "init", "--from", folder, "--overwrite", "--kind", "Book", "--name", "x").wantError(t, "--kind is for a new project", "--name is for a new project")
	sallyport(t, "init", "github.com/me/bookstore", "--from", folder).wantError(t, "takes no argument", "github.com/me/bookstore")
	sallyport(t, "init", "--from", folder).wantError(t, "no Go file has a marker +kubebuilder:webhook")
	sallyport(t, "init", "--from", filepath.Join(folder, "nothing")).wantError(t, "no such file")
	if err := os.WriteFile(filepath.Join(folder, "a.go"), []byte("package a\n\n// +kubebuilder:webhook:mutating=true,timeout=3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sallyport(t, "init", "--from", folder).wantError(t, `a.go:3: unknown argument "timeout"`)
}

// Kustomize adds what markers do not have.
func TestInitReadsManifestsFromStdinAndFiles(t *testing.T) {
	const rendered = "../internal/install/scaffold/testdata/rendered.yaml"
	text, err := os.ReadFile(rendered)
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{"-", rendered} {
		folder := t.TempDir()
		r := sallyportWith(t, string(text), "init", "--from", from, "--dir", folder)
		if r.status != 0 || !strings.Contains(r.stderr, "note: CustomResourceDefinition books.books.example.com: a webhook converts") {
			t.Errorf("%s: status %d, stderr is\n%s", from, r.status, r.stderr)
		}
		if code, err := os.ReadFile(filepath.Join(folder, "internal", "definitions", "webhooks.go")); err != nil || !strings.Contains(string(code), `MatchLabels: map[string]string{"shop": "yes"}`) {
			t.Errorf("%s: %v\n%s", from, err, code)
		}
	}
	sallyportWith(t, "", "init", "--from", "-").wantError(t, "stdin holds no object")
}

func TestInitReportsAllProblems(t *testing.T) {
	sallyport(t, "init").wantError(t, "takes the path of a Go module", "got 0 arguments")
	sallyport(t, "init", "github.com/me/bookstore", "--dry-run").wantError(t, "--kind", "--versions", "--replace")
	sallyport(t, "init", "github.com/me/bookstore", "--replace", ".", "--kind", "book", "--versions", "v1,1", "--group", "x", "--scope", "Global").
		wantError(t, `--kind "book"`, `--versions "1"`, `--group "x"`, "--scope \"Global\": choose Namespaced or Cluster")
}
