// SPDX-License-Identifier: Apache-2.0

package review

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/manifest"
	"github.com/sallyport-io/sallyport/internal/report"
)

// The forms in which a Printer prints what came out.
const (
	OutputDiff   = "diff"
	OutputYAML   = "yaml"
	OutputJSON   = "json"
	OutputPatch  = "patch"
	OutputReview = "review"
)

// Outputs are all of them.
var Outputs = append([]string{OutputDiff, OutputYAML, OutputJSON, OutputPatch, OutputReview}, report.Formats...)

// A Printer prints outcomes: what was asked for to out, the rest to notes.
type Printer struct {
	Out, Notes io.Writer
	Output     string // one of Outputs
	Color      bool

	printed, reviewed, changed, denied int
	entries                            []report.Entry
}

// Print prints an outcome. Of a denied one there is only a note, but for OutputReview. The
// formats of package report are written by [Printer.End].
func (p *Printer) Print(o *Outcome) error {
	p.count(o)
	for _, warning := range o.Warnings {
		manifest.Note(p.Notes, "warning: %s: %s", o.Object.Title(), warning)
	}
	if len(o.Called()) == 0 {
		manifest.Note(p.Notes, "note: %s: no webhook is called for %s of %s", o.Object.At(), o.Request.Operation, o.Object.Title())
	}
	if o.Denied != nil {
		manifest.Note(p.Notes, "denied: %s: %s: %s", o.Object.Title(), o.DeniedBy, o.Denied.Message)
		if p.Output != OutputReview {
			return nil
		}
	}
	if slices.Contains(report.Formats, p.Output) {
		return nil
	}
	text, err := p.format(o)
	if err != nil || text == "" {
		return err
	}
	if p.Output == OutputYAML && p.printed > 0 {
		text = "---\n" + text
	}
	p.printed++
	_, err = io.WriteString(p.Out, text)
	return err
}

// The rules of a report.
const (
	ruleDenied       = "denied"
	ruleWarning      = "warning"
	ruleUnreviewable = "not-reviewed"
)

// count keeps what the summary and a report say of an outcome.
func (p *Printer) count(o *Outcome) {
	p.reviewed++
	file, line := o.Object.Position("")
	entry := report.Entry{Suite: cmp.Or(file, "cluster"), Name: o.Object.Title(), Level: report.Pass, File: file, Line: line, Message: "allowed, unchanged"}
	for _, warning := range o.Warnings {
		warned := entry
		warned.Level, warned.Rule, warned.Message = report.Warning, ruleWarning, warning
		p.entries = append(p.entries, warned)
	}
	switch changed := o.Changed(); {
	case o.Denied != nil:
		p.denied++
		entry.Level, entry.Rule, entry.Message = report.Failure, ruleDenied, o.DeniedBy+": "+o.Denied.Message
	case len(changed) > 0:
		p.changed++
		entry.Message = "allowed, changed by " + strings.Join(changed, ", ")
	}
	p.entries = append(p.entries, entry)
}

// End prints a summary below the diffs of several outcomes, or the report. The error is about objects that
// could not be reviewed.
func (p *Printer) End(err error) error {
	if slices.Contains(report.Formats, p.Output) {
		docs := report.DocsURI("review.md")
		out := report.Report{Tool: "sallyport review", Version: cli.BuildVersion(), Entries: p.entries, Rules: []report.Rule{
			{ID: ruleDenied, What: "Admission allows the object.", URI: docs},
			{ID: ruleWarning, What: "Admission has a warning for the object's author.", URI: docs},
			{ID: ruleUnreviewable, What: "The object can be reviewed.", URI: docs},
		}}
		out.AddErrors(out.Tool, ruleUnreviewable, err)
		return out.Write(p.Out, p.Output)
	}
	if p.Output == OutputDiff && p.reviewed > 1 {
		manifest.Note(p.Notes, "%d objects: %d allowed, %d of them changed, %d denied", p.reviewed, p.reviewed-p.denied, p.changed, p.denied)
	}
	return nil
}

func (p *Printer) format(o *Outcome) (string, error) {
	switch p.Output {
	case OutputYAML:
		out, err := yaml.JSONToYAML(o.After)
		return string(out), err
	case OutputJSON:
		return manifest.Indent(o.After)
	case OutputPatch:
		return manifest.Indent(Patch(o))
	case OutputReview:
		var all strings.Builder
		for _, call := range o.Calls {
			if call.Again && call.Patch == nil && call.Response.Allowed {
				continue // it says the same as before
			}
			text, err := manifest.Indent(call.Answer)
			if err != nil {
				return "", err
			}
			all.WriteString(text)
		}
		return all.String(), nil
	default:
		return Diff(o, p.Color)
	}
}

// Patch makes one JSON Patch of those that were applied one after the other.
func Patch(o *Outcome) jsontext.Value {
	joined := []byte{'['}
	for _, call := range o.Calls {
		if call.Patch == nil {
			continue
		}
		operations := call.Patch[1 : len(call.Patch)-1]
		if len(joined) > 1 && len(operations) > 0 {
			joined = append(joined, ',')
		}
		joined = append(joined, operations...)
	}
	return append(joined, ']')
}
