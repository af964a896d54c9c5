// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"io/fs"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"
)

// TestTemplatesMeanWhatTheyMeanToGo executes each template of a project with package
// text/template too.
func TestTemplatesMeanWhatTheyMeanToGo(t *testing.T) {
	title := func(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
	for _, p := range []*Project{
		{Module: "example.com/bookstore", Kind: "Book", Scope: ScopeNamespaced, Versions: []string{"v1alpha1", "v1beta1", "v1"}, Replace: "../../../.."},
		{Module: "example.com/fleet", Kind: "Ox", Plural: "oxen", Scope: "Cluster", Versions: []string{"v1"}, Replace: "../../../.."},
	} {
		if err := p.Complete(); err != nil {
			t.Fatal(err)
		}
		values := view{p, p.Versions[0]}.values()
		err := fs.WalkDir(templates, "templates", func(at string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := templates.ReadFile(at)
			if err != nil {
				return err
			}
			theirs, err := template.New(at).Option("missingkey=error").Funcs(template.FuncMap{"title": title}).Parse(string(text))
			if err != nil {
				return err
			}
			var want strings.Builder
			if err := theirs.Execute(&want, values); err != nil {
				return err
			}
			ours, err := parseTemplate(at, string(text), map[string]templateFunction{"title": func(args []any) (any, error) { return title(args[0].(string)), nil }})
			if err != nil {
				return err
			}
			got, err := ours.execute(at, values)
			if diff := cmp.Diff(want.String(), got); diff != "" {
				t.Errorf("%s: %s", at, diff)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestTemplatesThatAreNotSupportedAreErrors(t *testing.T) {
	for _, text := range []string{"{{.None}}", "{{.A | printf \"%s\"}}", "{{$x := .A}}", "{{with .A}}{{end}}", "{{template \"none\"}}", "{{len .A}}", "{{break}}"} {
		set, err := parseTemplate("a", text, nil)
		if err == nil {
			_, err = set.execute("a", map[string]any{"A": "x"})
		}
		if err == nil {
			t.Errorf("%s is executed", text)
		}
	}
}
