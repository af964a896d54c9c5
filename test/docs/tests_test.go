// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTestsThatDocumentsNameExist keeps a promise from outliving its proof.
func TestTestsThatDocumentsNameExist(t *testing.T) {
	defined := map[string]string{} // the text of its file
	definition := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "bin") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, "_test.go") {
			text := read(t, path)
			for _, m := range definition.FindAllStringSubmatch(text, -1) {
				defined[m[1]] = text
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, guide := range guides(t) {
		for _, m := range regexp.MustCompile("`(Test[A-Z]\\w+)(?:/([^`]+))?`").FindAllStringSubmatch(read(t, guide), -1) {
			named++
			switch at, ok := defined[m[1]]; {
			case !ok:
				t.Errorf("%s names the test %s, which does not exist", guide, m[1])
			case m[2] != "" && !strings.Contains(at, `"`+m[2]+`"`):
				t.Errorf("%s names the case %q of %s, which does not exist", guide, m[2], m[1])
			}
		}
	}
	if named == 0 {
		t.Error("no test is named")
	}
}

// TestEveryAttackHasItsTest reads the table of docs/security.md: in each line something is
// tried, something stops it, and a test or a row of make faults shows that.
func TestEveryAttackHasItsTest(t *testing.T) {
	rows := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\t\{"([a-z-]+)", `).FindAllStringSubmatch(read(t, filepath.Join(root, "test/e2e/faults/rows.go")), -1) {
		rows[m[1]] = true
	}
	_, table, ok := strings.Cut(read(t, filepath.Join(root, "docs/security.md")), "\n| attack | what stops it | test |\n|---|---|---|\n")
	if !ok || len(rows) == 0 {
		t.Fatalf("there is no table of attacks, or make faults has no row (it has %d)", len(rows))
	}
	table, _, _ = strings.Cut(table, "\n\n")
	attacks := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if strings.HasPrefix(line, "| **") {
			continue // whose attacks follow
		}
		attacks++
		if len(cells) != 3 || strings.TrimSpace(cells[1]) == "" {
			t.Errorf("not an attack, what stops it, and a test: %s", line)
			continue
		}
		faults := regexp.MustCompile("row `([a-z-]+)`").FindAllStringSubmatch(cells[2], -1)
		for _, m := range faults {
			if !rows[m[1]] {
				t.Errorf("make faults has no row %s: %s", m[1], line)
			}
		}
		if len(faults) == 0 && !strings.Contains(cells[2], "`Test") {
			t.Errorf("nothing shows that it is stopped: %s", line)
		}
	}
	if attacks == 0 {
		t.Error("the table has no attack")
	}
}
