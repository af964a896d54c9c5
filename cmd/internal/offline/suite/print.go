// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/plugins"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/report"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// Outputs are the formats of a Printer.
var Outputs = append([]string{"text", "json", "yaml"}, report.Formats...)

// A Printer prints results: as text one at a time, in other formats all at the end.
type Printer struct {
	Out     io.Writer
	Output  string // one of Outputs
	Verbose bool   // text: also passed cases, and notes
	Color   bool

	results []*Result
	err     error
}

// Print adds a result.
func (p *Printer) Print(r *Result) {
	p.results = append(p.results, r)
	if p.Output == Outputs[0] && p.err == nil {
		_, p.err = io.WriteString(p.Out, p.text(r))
	}
}

// Counts are numbers of cases.
type Counts struct {
	// Failed have unmet expectations, Broken could not run, and Unknown depend on what is not known.
	Failed, Broken, Unknown int
}

func (p *Printer) counts() (n Counts) {
	for _, r := range p.results {
		switch {
		case r.Err != nil:
			n.Broken++
		case len(r.Problems) > 0:
			n.Failed++
		case len(r.Unknown) > 0:
			n.Unknown++
		}
	}
	return n
}

// open returns what could refuse pods and is not among the files of all cases.
func (p *Printer) open() string {
	var open plugins.Open
	for _, r := range p.results {
		open.Add(&r.Open)
	}
	return open.String()
}

// End prints the rest, and counts the cases.
func (p *Printer) End(took time.Duration) (Counts, error) {
	n, err := p.counts(), p.err
	switch {
	case err != nil:
	case p.Output == Outputs[0]:
		total := len(p.results)
		if text := p.open(); text != "" {
			_, err = fmt.Fprintln(p.Out, manifest.PrintableLine("note: "+text))
		}
		unknown := ""
		if n.Unknown > 0 {
			unknown = fmt.Sprintf(", %d unknown", n.Unknown)
		}
		_, errTotal := fmt.Fprintf(p.Out, "%s: %d passed, %d failed, %d could not run%s (%.1f s)\n",
			cli.Count(total, "case", "cases"), total-n.Failed-n.Broken-n.Unknown, n.Failed, n.Broken, unknown, took.Seconds())
		err = cmp.Or(err, errTotal)
	case p.Output == "json" || p.Output == "yaml":
		err = p.document()
	default:
		err = p.report().Write(p.Out, p.Output)
	}
	return n, err
}

func (p *Printer) text(r *Result) string {
	var out strings.Builder
	paint := func(code, text string) string {
		if !p.Color {
			return text
		}
		return "\x1b[" + code + "m" + text + "\x1b[0m"
	}
	title := manifest.Printable(r.Title())
	switch {
	case r.Err != nil:
		fmt.Fprintf(&out, "%s %s (%s)\n%s", paint("31", "ERROR"), title, r.at(), indent(r.Err.Error()))
	case !r.Passed():
		verdict := "FAIL"
		if len(r.Problems) == 0 {
			verdict = "UNKNOWN"
		}
		fmt.Fprintf(&out, "%s  %s (%s)\n", paint("31", verdict), title, r.at())
		for _, problem := range r.Problems {
			out.WriteString(indent(problem.Message) + indent(problem.Diff))
		}
		for _, unknown := range r.Unknown {
			out.WriteString(indent("not known: " + unknown))
		}
	case p.Verbose:
		fmt.Fprintf(&out, "%s    %s (%d ms)\n", paint("32", "ok"), title, r.Duration.Milliseconds())
	}
	notes := slices.Clone(r.Notes)
	if !p.Verbose && r.Passed() {
		notes = slices.DeleteFunc(notes, func(note string) bool { return !strings.HasPrefix(note, warningPrefix) })
		if len(notes)+len(r.Warnings) > 0 {
			fmt.Fprintf(&out, "%s  %s (%s)\n", paint("33", "WARN"), title, r.at())
		}
	}
	for _, note := range notes {
		out.WriteString(indent(note))
	}
	if r.Passed() {
		for _, warning := range r.Warnings {
			out.WriteString(indent(warningPrefix + warning))
		}
	}
	for _, file := range r.Updated {
		fmt.Fprintf(&out, "wrote %s\n", manifest.Printable(file))
	}
	return out.String()
}

func (c *Case) at() string {
	if c.Line == 0 {
		return manifest.Printable(c.File)
	}
	return fmt.Sprintf("%s:%d", manifest.Printable(c.File), c.Line)
}

// indent indents a multi-line text below a title.
func indent(text string) string {
	var out strings.Builder
	for line := range strings.Lines(manifest.Printable(text)) {
		out.WriteString("      " + strings.TrimSuffix(line, "\n") + "\n")
	}
	return out.String()
}

// A Document has the results as JSON or YAML.
type Document struct {
	Cases []documented `json:"cases"`
	Notes []string     `json:"notes,omitempty"`
}

type documentedProblem struct {
	Message string `json:"message"`
	Diff    string `json:"diff,omitempty"`
}

type documented struct {
	Suite    string              `json:"suite"`
	Name     string              `json:"name"`
	File     string              `json:"file"`
	Line     int                 `json:"line,omitempty"`
	Passed   bool                `json:"passed"`
	Problems []documentedProblem `json:"problems,omitempty"`
	Unknown  []string            `json:"unknown,omitempty"`
	Error    string              `json:"error,omitempty"`
	Notes    []string            `json:"notes,omitempty"`
	Warnings []string            `json:"warnings,omitempty"`
	Updated  []string            `json:"updated,omitempty"`
	Seconds  float64             `json:"seconds"`
}

// document prints the results as JSON or YAML.
func (p *Printer) document() error {
	results := make([]documented, len(p.results))
	for i, r := range p.results {
		to := &results[i]
		*to = documented{
			Suite: r.Suite, Name: r.Name, File: r.File, Line: r.Line, Passed: r.Passed(),
			Unknown: r.Unknown, Notes: r.Notes, Warnings: r.Warnings, Updated: r.Updated, Seconds: r.Duration.Seconds(),
		}
		for _, one := range r.Problems {
			to.Problems = append(to.Problems, documentedProblem(one))
		}
		if r.Err != nil {
			to.Error = r.Err.Error()
		}
	}
	all := Document{Cases: results}
	if text := p.open(); text != "" {
		all.Notes = []string{text}
	}
	return cli.PrintAs(p.Out, p.Output, all)
}

// warningPrefix begins notes that are warnings.
const warningPrefix = "warning: "

// warnings returns the warnings of a case.
func (r *Result) warnings() []string {
	out := slices.Clone(r.Warnings)
	for _, note := range r.Notes {
		if text, ok := strings.CutPrefix(note, warningPrefix); ok {
			out = append(out, text)
		}
	}
	return out
}

// report returns a report with an entry for each case, which lists all problems of the case.
func (p *Printer) report() *report.Report {
	const failed, broken, warned, undecided = "case-failed", "case-error", "case-warning", "case-unknown"
	docs := report.DocsURI("testing.md")
	out := &report.Report{
		Tool: "sallyport test", Version: cli.BuildVersion(),
		Rules: []report.Rule{
			{ID: failed, What: "A test case of a policy ends as it expects.", Help: "Correct the policy, or the expectation: `sallyport test --update` writes expected files anew.", URI: docs},
			{ID: warned, What: "A test case of a policy has no warnings.", Help: "Correct the problem in the message, or expect the warning.", URI: docs},
			{ID: undecided, What: "What decides a test case of a policy is among its files.", Help: "Add the object that the message names to `with`.", URI: docs},
			{ID: broken, What: "A test case of a policy can run.", Help: "Correct the file that the message names.", URI: docs},
		},
	}
	for _, r := range p.results {
		entry := report.Entry{Suite: r.Suite, Name: r.Name, Level: report.Pass, File: r.File, Line: r.Line, Duration: r.Duration}
		switch {
		case r.Err != nil:
			first := len(out.Entries)
			out.AddErrors(r.Title(), broken, r.Err)
			for i := first; i < len(out.Entries); i++ {
				if out.Entries[i].File == "" {
					out.Entries[i].File, out.Entries[i].Line = r.File, r.Line
				}
			}
			continue
		case len(r.Problems) > 0:
			entry.Level, entry.Rule = report.Failure, failed
			var details []string
			for i, problem := range r.Problems {
				if i == 0 {
					entry.Message = problem.Message
				} else {
					details = append(details, problem.Message)
				}
				if problem.Diff != "" {
					details = append(details, problem.Diff)
				}
			}
			entry.Details = strings.Join(details, "\n")
		case len(r.Unknown) > 0:
			entry.Level, entry.Rule, entry.Message, entry.Details = report.Error, undecided, "not known: "+r.Unknown[0], strings.Join(r.Unknown[1:], "\n")
		case len(r.warnings()) > 0:
			warnings := r.warnings()
			entry.Level, entry.Rule, entry.Message, entry.Details = report.Warning, warned, warnings[0], strings.Join(warnings[1:], "\n")
		}
		out.Entries = append(out.Entries, entry)
	}
	return out
}
