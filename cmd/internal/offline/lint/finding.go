// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"slices"
	"strings"
)

// Finding is a finding of a rule about an object.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// File and Line locate the finding; empty for objects of a cluster.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Object is "Kind/name" or "Kind/namespace/name".
	Object string `json:"object"`
	// Webhook is the name of the entry, in a webhook configuration.
	Webhook string `json:"webhook,omitempty"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
	// Ignored is the reason why the finding is ignored.
	Ignored string `json:"ignored,omitempty"`
}

// Skipped says what a rule could not check.
type Skipped struct {
	Rule string `json:"rule"`
	// Reason says what was missing.
	Reason string `json:"reason"`
	// Objects are the affected objects; empty means all.
	Objects []string `json:"objects,omitempty"`
}

// Report is the result of all rules.
type Report struct {
	// Findings are ordered by file, line, object, webhook and rule.
	Findings []Finding `json:"findings"`
	// Ignored are ignored findings, with the reason.
	Ignored []Finding `json:"ignored,omitempty"`
	Skipped []Skipped `json:"skipped,omitempty"`
	// Checked is the number of objects per kind.
	Checked map[string]int `json:"checked"`
}

// sort orders the report and merges duplicates.
func (r *Report) sort() {
	order := func(a, b Finding) int {
		return cmp.Or(
			strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(a.Object, b.Object),
			strings.Compare(a.Webhook, b.Webhook), strings.Compare(a.Rule, b.Rule), strings.Compare(a.Message, b.Message))
	}
	slices.SortStableFunc(r.Findings, order)
	r.Findings = slices.Compact(r.Findings)
	slices.SortStableFunc(r.Ignored, order)
	r.Ignored = slices.Compact(r.Ignored)
	for i := range r.Skipped {
		slices.Sort(r.Skipped[i].Objects)
		r.Skipped[i].Objects = slices.Compact(r.Skipped[i].Objects)
	}
	slices.SortStableFunc(r.Skipped, func(a, b Skipped) int {
		return cmp.Or(strings.Compare(a.Rule, b.Rule), strings.Compare(a.Reason, b.Reason))
	})
}
