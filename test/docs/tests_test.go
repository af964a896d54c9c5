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
	defined := map[string]bool{}
	definition := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "bin") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, "_test.go") {
			for _, m := range definition.FindAllStringSubmatch(read(t, path), -1) {
				defined[m[1]] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, guide := range guides(t) {
		for _, m := range regexp.MustCompile("`(Test[A-Z]\\w+)`").FindAllStringSubmatch(read(t, guide), -1) {
			named++
			if !defined[m[1]] {
				t.Errorf("%s names the test %s, which does not exist", guide, m[1])
			}
		}
	}
	if named == 0 {
		t.Error("no test is named")
	}
}
