// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Go code that is shown is code that is compiled and tested: of an example.
func TestGoCodeInDocumentsIsThatOfTheExamples(t *testing.T) {
	var examples strings.Builder
	err := filepath.WalkDir(filepath.Join(root, "examples"), func(path string, _ os.DirEntry, err error) error {
		if filepath.Ext(path) == ".go" {
			examples.WriteString(read(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, document := range documents(t) {
		for _, block := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(read(t, document), -1) {
			seen++
			if !strings.Contains(examples.String(), block[1]) {
				t.Errorf("%s shows code that no example has:\n%s", document, block[1])
			}
		}
	}
	if seen == 0 {
		t.Error("no document shows code")
	}
}
