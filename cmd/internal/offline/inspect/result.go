// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/report"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// Result collects reports on files and on a cluster.
type Result struct {
	// Threshold is the lowest severity that is shown and counted.
	Threshold lint.Severity
	// Err joins all errors from reading the input.
	Err error

	report lint.Report
	below  int // findings below the threshold
	// known are findings of the baseline, gone those that it has and that are no longer found.
	known, gone int
	baseline    string // its file
}

// Add adds a report and the errors from reading its input.
func (r *Result) Add(report *lint.Report, err error) {
	r.Err = errors.Join(r.Err, err)
	for _, f := range report.Findings {
		if f.Severity.AtLeast(r.Threshold) {
			r.report.Findings = append(r.report.Findings, f)
		} else {
			r.below++
		}
	}
	for _, f := range report.Ignored {
		if f.Severity.AtLeast(r.Threshold) {
			r.report.Ignored = append(r.report.Ignored, f)
		}
	}
	r.report.Skipped = append(r.report.Skipped, report.Skipped...)
	if r.report.Checked == nil {
		r.report.Checked = map[string]int{}
	}
	for kind, n := range report.Checked {
		r.report.Checked[kind] += n
	}
}

// Found reports whether there are findings at or above the threshold.
func (r *Result) Found() bool { return len(r.report.Findings) > 0 }

// A Document is the result as JSON or YAML.
type Document struct {
	lint.Report
	BelowThreshold int      `json:"belowThreshold"`
	OfBaseline     int      `json:"ofBaseline,omitempty"`
	Errors         []string `json:"errors,omitempty"`
}

// PrintAs prints the result as JSON or YAML.
func (r *Result) PrintAs(out io.Writer, format string) error {
	printed := Document{Report: r.report, BelowThreshold: r.below, OfBaseline: r.known}
	if printed.Findings == nil {
		printed.Findings = []lint.Finding{}
	}
	for _, err := range manifest.SplitErrors(r.Err) {
		printed.Errors = append(printed.Errors, err.Error())
	}
	return cli.PrintAs(out, format, printed)
}

// Report has an entry for each finding, each check that was skipped and each read error, and
// one for the summary.
func (r *Result) Report(tool string) *report.Report {
	const unreadable, skipped = "unreadable", "not-checked"
	out := &report.Report{Tool: tool, Version: cli.BuildVersion(), Rules: []report.Rule{
		{ID: unreadable, What: "All inputs can be read.", Help: "Correct the problem in the message.", URI: report.DocsURI("lint.md")},
		{ID: skipped, What: "A rule could not check everything.", Help: "Add the missing objects, or check the cluster.", URI: report.DocsURI("lint.md")},
	}}
	for _, rule := range lint.Rules() {
		out.Rules = append(out.Rules, report.Rule{ID: rule.ID, What: rule.What, Help: rule.Fix, URI: report.DocsURI("lint.md#" + rule.ID)})
	}
	for _, f := range r.report.Findings {
		entry := report.Entry{
			Suite: objectHead(f), Name: f.Rule, Rule: f.Rule, File: f.File, Line: f.Line, Message: where(f) + f.Message, Details: f.Fix,
		}
		switch f.Severity {
		case lint.Error:
			entry.Level = report.Failure
		case lint.Warning:
			entry.Level = report.Warning
		default:
			entry.Level = report.Info
		}
		out.Entries = append(out.Entries, entry)
	}
	for _, line := range skippedLines(r.report.Skipped) {
		out.Entries = append(out.Entries, report.Entry{Suite: tool, Name: skipped, Rule: skipped, Level: report.Info, Message: line})
	}
	out.AddErrors(tool, unreadable, r.Err)
	out.Entries = append(out.Entries, report.Entry{Suite: tool, Name: "summary", Level: report.Pass, Message: r.summary()})
	return out
}

// PrintText prints findings by object, then what is below the threshold, what was not checked,
// and a summary.
func (r *Result) PrintText(out io.Writer) error {
	var text strings.Builder
	last := ""
	for _, same := range repeated(r.report.Findings) {
		f := same[0]
		if head := objectHead(f); head != last {
			if last != "" {
				text.WriteByte('\n')
			}
			fmt.Fprintf(&text, "%s\n", manifest.PrintableLine(head))
			last = head
		}
		fmt.Fprintf(&text, "  %-8s%s\n", f.Severity, manifest.PrintableLine(where(f)+f.Message))
		if len(same) > 1 {
			fmt.Fprintf(&text, "          and %d more: %s\n", len(same)-1, manifest.PrintableLine(others(same[1:])))
		}
		fmt.Fprintf(&text, "          %s\n", manifest.PrintableLine(f.Fix))
	}
	if len(r.report.Findings) > 0 {
		text.WriteByte('\n')
	}
	for _, f := range r.report.Ignored {
		fmt.Fprintf(&text, "ignored: %s: %s: %s\n", f.Rule, manifest.PrintableLine(objectName(f)), manifest.Printable(cli.OneLine(f.Ignored)))
	}
	for _, line := range skippedLines(r.report.Skipped) {
		fmt.Fprintf(&text, "not checked: %s\n", manifest.PrintableLine(line))
	}
	text.WriteString(r.summary() + "\n")
	_, err := io.WriteString(out, text.String())
	return err
}

// repeated groups findings of one object that differ in their webhook and line alone, in the order of the first of each.
func repeated(findings []lint.Finding) [][]lint.Finding {
	type key struct{ head, rule, message, fix string }
	var out [][]lint.Finding
	seen, last := map[key]int{}, ""
	for _, f := range findings {
		if head := objectHead(f); head != last {
			last, seen = head, map[key]int{}
		}
		k := key{last, f.Rule + string(f.Severity), f.Message, f.Fix}
		if i, ok := seen[k]; ok {
			out[i] = append(out[i], f)
			continue
		}
		seen[k] = len(out)
		out = append(out, []lint.Finding{f})
	}
	return out
}

// others names the webhooks, or else the lines, of findings.
func others(findings []lint.Finding) string {
	const shown = 3
	var names []string
	for i, f := range findings {
		if i == shown && len(findings) > shown+1 {
			names = append(names, "…")
			break
		}
		if f.Webhook != "" {
			names = append(names, f.Webhook)
		} else {
			names = append(names, fmt.Sprintf("line %d", f.Line))
		}
	}
	return strings.Join(names, ", ")
}

// objectHead returns the object, and its file if it comes from one.
func objectHead(f lint.Finding) string {
	if f.File == "" {
		return f.Object
	}
	return f.File + ": " + f.Object
}

// objectName returns the object and the webhook of a finding.
func objectName(f lint.Finding) string {
	if f.Webhook == "" {
		return f.Object
	}
	return f.Object + " " + f.Webhook
}

// where returns the rule, the line and the webhook of a finding.
func where(f lint.Finding) string {
	out := f.Rule + ": "
	if f.Line > 0 {
		out = fmt.Sprintf("%s (line %d): ", f.Rule, f.Line)
	}
	if f.Webhook != "" {
		out += f.Webhook + ": "
	}
	return out
}

// skippedLines lists what was not checked, one line for each reason.
func skippedLines(skipped []lint.Skipped) []string {
	const limit = 3
	var lines []string
	rules := map[string][]string{}
	for _, s := range skipped {
		line := cli.OneLine(s.Reason)
		if n := len(s.Objects); n > limit {
			line += fmt.Sprintf(" (%s and %d more)", strings.Join(s.Objects[:limit], ", "), n-limit)
		} else if n > 0 {
			line += " (" + strings.Join(s.Objects, ", ") + ")"
		}
		if _, ok := rules[line]; !ok {
			lines = append(lines, line)
		}
		if s.Rule != "*" {
			rules[line] = append(rules[line], s.Rule)
		}
	}
	for i, line := range lines {
		of, more := slices.Compact(rules[line]), ""
		if n := len(of); n > limit+1 {
			of, more = of[:limit], fmt.Sprintf(" and %d more rules", n-limit)
		}
		if len(of) > 0 {
			lines[i] = strings.Join(of, ", ") + more + ": " + line
		}
	}
	return lines
}

var plurals = map[lint.Severity]string{lint.Error: "errors", lint.Warning: "warnings", lint.Info: "info"}

func (r *Result) summary() string {
	objects := 0
	for _, n := range r.report.Checked {
		objects += n
	}
	counts := map[lint.Severity]int{}
	for _, f := range r.report.Findings {
		counts[f.Severity]++
	}
	var found []string
	for _, severity := range lint.Severities() {
		if counts[severity] > 0 {
			found = append(found, cli.Count(counts[severity], string(severity), plurals[severity]))
		}
	}
	if len(found) == 0 {
		found = []string{"nothing found"}
	}
	text := fmt.Sprintf("%s in %s", strings.Join(found, ", "), cli.Count(objects, "object", "objects"))
	if n := r.report.Checked["other kinds"]; n > 0 {
		text += fmt.Sprintf(" (%d of kinds that no rule is about)", n)
	}
	if r.below > 0 {
		text += fmt.Sprintf("; %d below %s", r.below, r.Threshold)
	}
	text += r.ofBaseline()
	webhooks := r.report.Checked["MutatingWebhookConfiguration"] + r.report.Checked["ValidatingWebhookConfiguration"] + r.report.Checked["CustomResourceDefinition"]
	if webhooks+r.report.Checked["ValidatingAdmissionPolicy"]+r.report.Checked["MutatingAdmissionPolicy"] == 0 {
		text += "; there is no webhook configuration, policy or CustomResourceDefinition among them"
	}
	return text
}
