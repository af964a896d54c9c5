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
