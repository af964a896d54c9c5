// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/test/golden"
)

func TestTheReferenceOfRulesIsTheOneOfTheCode(t *testing.T) {
	path := filepath.Join(root, "docs", "lint.md")
	text := read(t, path)
	const marker = "<!-- What follows is generated:"
	at := strings.Index(text, marker)
	if at < 0 {
		t.Fatalf("%s has no line %q", path, marker)
	}
	end := at + strings.Index(text[at:], "\n") + 1
	want := text[:end] + ruleReference()
	if golden.Update() {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("docs/lint.md is not up to date (-want +got):\n%s", diff)
	}
}

// ruleReference is the reference of all rules in Markdown.
func ruleReference() string {
	var out strings.Builder
	group := ""
	for _, rule := range lint.Rules() {
		if rule.Group != group {
			group = rule.Group
			fmt.Fprintf(&out, "\n### %s\n", group)
		}
		levels := make([]string, len(rule.Severities))
		for i, severity := range rule.Severities {
			levels[i] = string(severity)
		}
		fmt.Fprintf(&out, "\n#### %s\n\n*%s.* %s %s\n\nFix: %s Source: %s.\n",
			rule.ID, strings.Join(levels, ", "), rule.What, rule.Why, rule.Fix, rule.Source)
	}
	return out.String()
}
