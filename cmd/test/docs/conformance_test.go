// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	requirement  = regexp.MustCompile(`(?m)^\| (\d+) \| [^|]+ \| ([^|]+) \|$`)
	shownBy      = regexp.MustCompile("`(Test\\w+|[a-z]+/[a-z0-9-]+)`")
)

// docs/conformance.md names what shows that Sallyport does what other systems do.
func TestWhatShowsARequirementExists(t *testing.T) {
	const root = "../../.."
	tests := map[string][]string{} // the files that have one of that name
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "bin"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		data, err := os.ReadFile(path)
		for _, m := range testFunction.FindAllStringSubmatch(string(data), -1) {
			tests[m[1]] = append(tests[m[1]], path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := requirement.FindAllStringSubmatch(string(page), -1)
	for i, row := range rows {
		if row[1] != strconv.Itoa(i+1) {
			t.Fatalf("row %s stands in the place of row %d", row[1], i+1)
		}
		for _, m := range shownBy.FindAllStringSubmatch(row[2], -1) {
			folder, name, isCase := strings.Cut(m[1], "/")
			if !isCase && len(tests[m[1]]) != 1 {
				t.Errorf("row %s: want one test %s, there are %q", row[1], m[1], tests[m[1]])
			}
			if isCase {
				file := filepath.Join(folder, "testdata", name+".txtar")
				if !slices.ContainsFunc([]string{"cmd/internal/webhooks", "cmd/internal", "internal", "internal/hosting"}, func(below string) bool {
					_, err := os.Stat(filepath.Join(root, below, file))
					return err == nil
				}) {
					t.Errorf("row %s: there is no %s", row[1], file)
				}
			}
		}
	}
	if len(rows) != 162 {
		t.Errorf("the page has %d requirements", len(rows))
	}
}
