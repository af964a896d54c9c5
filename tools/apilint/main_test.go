// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLint(t *testing.T) {
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	found, err := lint(folder, []string{"./testdata/bad"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := ""
	for _, f := range found {
		all += f.at + ": " + f.rule + ": " + f.text + "\n"
	}
	for _, want := range []string{
		"testdata/bad/types.go:8: commentstart: ", "testdata/bad/types.go:9: integers: ", "testdata/bad/types.go:9: optionalorrequired: ",
		"testdata/bad/types.go:13: ssatags: ",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing in:\n%s", want, all)
		}
	}
}

// Only types that the file has are checked, and not as if a server stored them.
func TestLintOfAFile(t *testing.T) {
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	const bad = "github.com/sallyport-io/sallyport/tools/apilint/testdata/bad"
	found, err := lint(folder, []string{"./testdata/bad"}, []string{bad + ".File"})
	if err != nil || len(found) != 1 || found[0].rule != "integers" || !strings.Contains(found[0].text, "Part.Count") {
		t.Errorf("%v, %v", found, err)
	}
	for _, root := range []string{bad + ".Missing", "example.com/other.File", "File", ""} {
		if _, err := lint(folder, []string{"./testdata/bad"}, []string{root}); err == nil || !strings.Contains(err.Error(), "there is no type "+root) {
			t.Errorf("%q: %v", root, err)
		}
	}
}

func TestExceptions(t *testing.T) {
	found := []finding{{"a.go:1", "integers", "field Thing.Size should not use an int"}}
	for name, tc := range map[string]struct{ exceptions, want string }{
		"a finding fails":                           {"[]", "a.go:1: integers: field Thing.Size should not use an int"},
		"one with a reason does not":                {`[{rule: integers, reason: drop-in, fields: [Thing.Size]}]`, ""},
		"one without a reason is none":              {`[{rule: integers, fields: [Thing.Size]}]`, "without rule or reason"},
		"one of another field with the same prefix": {`[{rule: integers, reason: drop-in, fields: [Thing.Siz]}]`, "a.go:1: integers"},
		"one that is no longer found":               {`[{rule: integers, reason: drop-in, fields: [Thing.Size, Thing.Count]}]`, "remove the exception: integers: field Thing.Count"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "exceptions.yaml")
			if err := os.WriteFile(file, []byte(tc.exceptions), 0o600); err != nil {
				t.Fatal(err)
			}
			exceptions, err := read(file)
			if err == nil {
				err = compare(found, exceptions)
			}
			if err == nil && tc.want != "" || err != nil && (tc.want == "" || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
