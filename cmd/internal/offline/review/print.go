// SPDX-License-Identifier: Apache-2.0

package review

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/report"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// The output formats of a Printer.
const (
	OutputDiff   = "diff"
	OutputYAML   = "yaml"
	OutputJSON   = "json"
	OutputPatch  = "patch"
	OutputReview = "review"
)

// OutputsOfObjects lists the output formats for one object each, and Outputs also those of [Printer.End].
var (
	OutputsOfObjects = []string{OutputDiff, OutputYAML, OutputJSON, OutputPatch, OutputReview}
	Outputs          = slices.Concat(OutputsOfObjects, report.Formats)
)

// A Printer prints outcomes: the requested output to out, everything else to notes.
type Printer struct {
	Out, Notes io.Writer
	Output     string // one of Outputs
	Color      bool
	// AllowUnknown makes what is not known a warning.
	AllowUnknown bool

	printed, reviewed, changed, denied int
	unknown                            []string
	entries                            []report.Entry
}

// Print prints an outcome. A denied request gets only a note, except with OutputReview.
// [Printer.End] writes the formats of package report.
func (p *Printer) Print(o *Outcome) error {
	p.count(o)
	for _, warning := range o.Warnings {
		manifest.Note(p.Notes, "warning: %s: %s", o.Object.Title(), warning)
	}
	for _, unknown := range o.Unknown {
		manifest.Note(p.Notes, "not known: %s: %s", o.Object.Title(), unknown)
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
	remarks := ""
	for _, remark := range o.Remarks {
		if p.Output == OutputDiff {
			remarks += manifest.PrintableLine(remark) + "\n"
		} else if o.Denied == nil {
			manifest.Note(p.Notes, "note: %s: %s", o.Object.Title(), remark)
		}
	}
	text, err := p.format(o)
	if err != nil || text == "" {
		return err
	}
	if p.Output == OutputYAML && p.printed > 0 {
		text = "---\n" + text
	}
	p.printed++
	_, err = io.WriteString(p.Out, text+remarks)
	return err
}

// The rule IDs of a report.
const (
	ruleDenied       = "denied"
	ruleWarning      = "warning"
	ruleUnknown      = "unknown"
	ruleUnreviewable = "not-reviewed"
)

// count records an outcome for the summary and the report.
func (p *Printer) count(o *Outcome) {
	p.reviewed++
	file, line := o.Object.Position("")
	entry := report.Entry{Suite: cmp.Or(file, "cluster"), Name: o.Object.Title(), Level: report.Pass, File: file, Line: line, Message: "allowed, unchanged"}
	for _, warning := range o.Warnings {
		warned := entry
		warned.Level, warned.Rule, warned.Message = report.Warning, ruleWarning, warning
		p.entries = append(p.entries, warned)
	}
	for _, what := range o.Unknown {
		p.unknown = append(p.unknown, o.Object.Title()+": "+what)
		unknown := entry
		unknown.Level, unknown.Rule, unknown.Message = report.Error, ruleUnknown, "not known: "+what
		if p.AllowUnknown {
			unknown.Level = report.Warning
		}
		p.entries = append(p.entries, unknown)
	}
	switch changed := o.Changed(); {
	case o.Denied != nil:
		p.denied++
		entry.Level, entry.Rule, entry.Message = report.Failure, ruleDenied, o.DeniedBy+": "+o.Denied.Message
	case len(changed) > 0:
		p.changed++
		entry.Message = "allowed, changed by " + strings.Join(changed, ", ")
	}
	if o.Denied == nil {
		entry.Message = o.AsFarAsKnown(entry.Message)
	}
	p.entries = append(p.entries, entry)
}

// Verdict returns the exit status of what has been printed: nil, [cli.ExitDenied], or an error if it depends on
// what is not known, and that is not allowed.
func (p *Printer) Verdict() error {
	if err := cli.ErrUnknown(p.unknown); err != nil && !p.AllowUnknown {
		return err
	}
	if p.denied > 0 {
		return cli.ExitDenied
	}
	return nil
}

// End prints the report, or a summary below several diffs. The error lists objects that could
// not be reviewed.
func (p *Printer) End(err error) error {
	if slices.Contains(report.Formats, p.Output) {
		docs := report.DocsURI("review.md")
		out := report.Report{Tool: "sallyport review", Version: cli.BuildVersion(), Entries: p.entries, Rules: []report.Rule{
			{ID: ruleDenied, What: "Admission allows the object.", URI: docs},
			{ID: ruleWarning, What: "Admission has a warning for the object's author.", URI: docs},
			{ID: ruleUnknown, What: "Whether the API server accepts the object is known.", Help: "Give the object that the message names with `--with`.", URI: docs},
			{ID: ruleUnreviewable, What: "The object can be reviewed.", URI: docs},
		}}
		out.AddErrors(out.Tool, ruleUnreviewable, err)
		return out.Write(p.Out, p.Output)
	}
	if p.Output == OutputDiff && p.reviewed > 1 {
		open := ""
		if n := len(p.unknown); n > 0 {
			open = fmt.Sprintf(", as far as is known: see %d above", n)
		}
		manifest.Note(p.Notes, "%d objects: %d allowed, %d of them changed, %d denied%s", p.reviewed, p.reviewed-p.denied, p.changed, p.denied, open)
	}
	return nil
}

func (p *Printer) format(o *Outcome) (string, error) {
	switch p.Output {
	case OutputYAML:
		out, err := manifest.YAML(o.After)
		return string(out), err
	case OutputJSON:
		return manifest.Indent(o.After)
	case OutputPatch:
		return manifest.Indent(Patch(o))
	case OutputReview:
		var all strings.Builder
		for _, call := range o.Calls {
			if call.Again && call.Patch == nil && call.Response.Allowed {
				continue // the same text again
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

// Patch combines the patches of all calls into one JSON Patch.
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
