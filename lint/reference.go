// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"strings"
)

// Reference is the reference of all rules in Markdown, for docs/lint.md.
func Reference() string {
	var out strings.Builder
	group := ""
	for _, rule := range Rules() {
		if rule.Group != group {
			group = rule.Group
			fmt.Fprintf(&out, "\n### %s\n", group)
		}
		levels := rule.levels()
		fmt.Fprintf(&out, "\n#### %s\n\n*%s.* %s %s\n\nFix: %s Source: %s.\n", rule.ID, levels, rule.What, rule.Why, rule.Fix, rule.Source)
	}
	return out.String()
}
