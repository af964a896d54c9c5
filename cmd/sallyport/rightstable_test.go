// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/reports"
	"github.com/sallyport-io/sallyport/cmd/internal/serve"
	"github.com/sallyport-io/sallyport/internal/registration/rbac"
)

// TestEachRightIsJustified compares the table in docs/security.md with the rules of the
// server's ClusterRole with everything on.
func TestEachRightIsJustified(t *testing.T) {
	want := map[string]bool{}
	add := func(rules []rbacv1.PolicyRule) {
		for _, rule := range rules {
			row := []string{strings.Join(rule.APIGroups, ", "), strings.Join(rule.Resources, ", "), strings.Join(rule.Verbs, ", "), strings.Join(rule.ResourceNames, ", ")}
			want[strings.Join(row, " | ")] = true
		}
	}
	for _, name := range serve.Names() {
		config := serve.Default()
		if err := config.Select(name); err != nil {
			t.Fatal(err)
		}
		serve.PodDefault(config).DataConnections = "connection"
		add(config.Rights())
	}
	add(rbac.PolicyRules("NAME"))
	add(rbac.BackstopPolicyRules("NAME"))
	add(rbac.OwnerPolicyRules("NAME"))
	add(reports.PolicyRules())

	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n# The server's rights\n")
	section, _, _ = strings.Cut(section, "\n# ")
	got := map[string]bool{}
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 5 || strings.HasPrefix(line, "|---") || strings.TrimSpace(cells[0]) == "group" {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if cells[4] == "" {
			t.Errorf("no reason: %s", line)
		}
		got[strings.Join(cells[:4], " | ")] = true
	}
	sorted := func(set map[string]bool) (out []string) {
		for row := range set {
			out = append(out, row)
		}
		slices.Sort(out)
		return out
	}
	if diff := cmp.Diff(sorted(want), sorted(got)); diff != "" {
		t.Errorf("docs/security.md (-rules +table):\n%s", diff)
	}
}
