// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-io/sallyport/test/golden"
)

// mark ends the text of each field that Kubeflow's API does not have.
const mark = "(+sallyport)"

// TestGeneratedFieldsBeyondKubeflow: each field that Kubeflow's API does not have says so, and no
// other, and docs/kubeflow-migration.md lists them.
func TestGeneratedFieldsBeyondKubeflow(t *testing.T) {
	var marked []string
	for parent, root := range podDefault(t).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties {
		for name, property := range root.Properties {
			path := parent + "." + name
			beyond := parent == "status" || parent == "spec" && !slices.Contains(fieldsOfKubeflow, name)
			if got := strings.HasSuffix(property.Description, mark); got != beyond {
				t.Errorf("%s: marked as Sallyport's own: %t, want %t", path, got, beyond)
			}
			if beyond {
				marked = append(marked, path)
			}
		}
	}
	slices.Sort(marked)
	for _, definition := range all(t) {
		if data := fmt.Sprint(definition.Spec.Versions[0].Schema.OpenAPIV3Schema); definition.Spec.Group != "kubeflow.org" && strings.Contains(data, mark) {
			t.Errorf("%s, of our own group, has a mark", definition.Name)
		}
	}
	const file = "../../docs/kubeflow-migration.md"
	const begin, end = "<!-- generated from the definition: go test ./config/crd -run Generated -update -->\n", "<!-- end -->\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	got, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s lacks the comments that enclose the list", file)
	}
	want := "\n" + wrapped(marked) + "\n"
	if golden.Update() {
		if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s is not up to date, run make generate (-want +got):\n%s", file, diff)
	}
}

// wrapped prints paths as code, in lines of at most 125 characters.
func wrapped(paths []string) string {
	var b strings.Builder
	length := 0
	for i, path := range paths {
		word := "`" + path + "`"
		if i < len(paths)-1 {
			word += ","
		}
		switch {
		case i == 0:
		case length+1+len(word) > 125:
			b.WriteString("\n")
			length = 0
		default:
			b.WriteString(" ")
			length++
		}
		b.WriteString(word)
		length += len(word)
	}
	return b.String() + "\n"
}
