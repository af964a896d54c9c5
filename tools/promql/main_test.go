// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestQueriesOfAlertsAndDashboardAreParsed(t *testing.T) {
	folder := "../../config/components/monitoring"
	for _, name := range []string{"prometheusrule.yaml", "dashboard.json"} {
		names, err := run([]string{filepath.Join(folder, name)})
		if err != nil {
			t.Error(err)
		}
		if !slices.Contains(names, "sallyport_admission_reviews_total") {
			t.Errorf("%s asks for %v only", name, names)
		}
	}
}

func TestWhatCannotBeParsedIsSaid(t *testing.T) {
	for name, tc := range map[string]struct{ content, want string }{
		"a query with a mistake":          {"expr: sum(rate(a[5m])", "unclosed left parenthesis"},
		"a function that does not exist":  {"rules: [{expr: 'sums(a)'}]", "unknown function"},
		"a selector that names no metric": {"expr: '{a=\"b\"}'", "names no metric"},
		"a file without a query":          {"a: 1", "there is no query"},
		"a file that is not YAML":         {"a: [", "yaml"},
		"an invalid rate of something":    {"expr: rate(a)", "expected type range vector"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "rules.yaml")
			if err := os.WriteFile(file, []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := run([]string{file}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	if _, err := run(nil); err == nil {
		t.Error("no file is no mistake")
	}
}
