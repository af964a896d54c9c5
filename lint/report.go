// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"slices"
	"strings"
)

// Finding is what a rule has to say about an object.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// File and Line say where; empty for an object of a cluster.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Object is "Kind/name" or "Kind/namespace/name".
	Object string `json:"object"`
	// Webhook is the name of the entry, in a webhook configuration.
	Webhook string `json:"webhook,omitempty"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
	// Ignored is the reason why the finding does not count.
	Ignored string `json:"ignored,omitempty"`
}

// Skipped says what a rule could not look at.
type Skipped struct {
	Rule string `json:"rule"`
	// Reason says what was missing.
	Reason string `json:"reason"`
	// Objects it was missing for; empty if for all.
	Objects []string `json:"objects,omitempty"`
}

// Report is what all rules have to say.
type Report struct {
	// Findings that count, ordered by file, line, object, webhook and rule.
	Findings []Finding `json:"findings"`
	// Ignored are findings that do not count, with the reason.
	Ignored []Finding `json:"ignored,omitempty"`
	Skipped []Skipped `json:"skipped,omitempty"`
	// Checked is how many objects of each kind there were to look at.
	Checked map[string]int `json:"checked"`
}

// sort orders the report, and folds what is said twice.
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
