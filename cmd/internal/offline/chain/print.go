// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/report"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/terminal"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// phases are the phases in kube-apiserver's order.
var phases = []struct {
	phase lint.Phase
	title string
}{
	{lint.MutatingPolicies, "Mutating policies, one after the other"},
	{lint.MutatingWebhooks, "Mutating webhooks, one after the other"},
	{LimitRanger, "Limit ranges"},
	{PodSecurity, "Pod security"},
	{lint.ValidatingPolicies, "Validating policies, one after the other"},
	{lint.ValidatingWebhooks, "Validating webhooks, all at the same time"},
	{Plugins, "Kube-apiserver's own plugins"},
}

// notEvaluated names the rest of the chain: k8s.io/kubernetes/pkg/kubeapiserver/options/plugins.go.
const notEvaluated = "kube-apiserver's other plugins, such as NodeRestriction, ServiceAccount, Priority and DefaultTolerationSeconds before these steps and ResourceQuota after them, " +
	"its validation of objects, and fields that it sets on storage"

// PrintText prints a result as text. Steps that a match condition excludes are only counted, unless all is
// set.
func (r *Result) PrintText(out io.Writer, title string, all bool) error {
	text := terminal.NewText(out)
	line := func(format string, args ...any) { text.Line(0, terminal.Plain.Of(manifest.Sprintf(format, args...))) }
	marked := func(style terminal.Style, word, message string) {
		text.Line(0, style.Of(word+": "), terminal.Plain.Of(manifest.Sprintf("%s", message)))
	}
	verdict, style := r.verdict()
	text.Line(0, terminal.Heading.Of(manifest.Sprintf("%s", title)), terminal.Plain.Of(": "), style.Of(verdict))
	number, skipped, heading := 0, 0, ""
	for _, s := range r.Steps {
		if s.Outcome == Skipped && !all {
			skipped++
			continue
		}
		if h := s.heading(); h != heading {
			heading = h
			text.Line(0, terminal.Heading.Of(manifest.Sprintf("\n%s:", h)))
		}
		number++
		s.print(text, number)
	}
	if len(r.Steps) == 0 {
		line("\nNo policy or webhook is for it.")
	}
	if skipped > 0 {
		line("%6d skipped: --show-excluded says why", skipped)
	}
	line("")
	if r.Denied != nil {
		marked(terminal.Bad, "refused", r.Denied.Message)
	}
	for _, warning := range r.Warnings {
		marked(terminal.Warn, "warning", warning)
	}
	for _, key := range slices.Sorted(maps.Keys(r.AuditAnnotations)) {
		if !strings.Contains(key, "webhook.admission.k8s.io/") { // the API server's own record of webhooks
			line("audit annotation: %s=%s", key, r.AuditAnnotations[key])
		}
	}
	for _, unknown := range r.Unknown {
		marked(terminal.Warn, "not known", unknown)
	}
	for _, note := range r.Notes {
		line("note: %s", note)
	}
	if !r.Asked {
		text.Line(0, terminal.Quiet.Of("not evaluated: "+notEvaluated))
	}
	return text.Flush()
}

// outcomeStyles are the styles of outcomes that people look for.
var outcomeStyles = map[Outcome]terminal.Style{
	Unchanged: terminal.Quiet, Skipped: terminal.Quiet, Changed: terminal.Note, Allowed: terminal.Good, Warned: terminal.Warn, Audited: terminal.Warn,
	Unknown: terminal.Warn, Ignored: terminal.Warn, Denied: terminal.Bad, Failed: terminal.Bad,
}

// print prints a step with its messages and changes.
func (s *Step) print(text *terminal.Text, number int) {
	const hang = 17 // the column of the name
	outcome := manifest.Sprintf("%-9s", s.Outcome)
	text.Line(hang, terminal.Plain.Of(manifest.Sprintf("%4d  ", number)), outcomeStyles[s.Outcome].Of(outcome), terminal.Plain.Of(manifest.Sprintf("  %s", s.title())))
	below := strings.Repeat(" ", hang)
	for _, message := range s.Messages {
		for one := range strings.SplitSeq(message, "\n") {
			text.Line(0, terminal.Plain.Of(manifest.Sprintf("%s%s", below, one)))
		}
	}
	for _, change := range s.Changes {
		what, origin := change.describe()
		text.Line(0, terminal.Plain.Of(below), changeStyles[what[:1]].Of(manifest.Sprintf("%s", what)), terminal.Quiet.Of(manifest.Sprintf("%s", origin)))
	}
}

// changeStyles are the styles of changes by their first character, as in a diff.
var changeStyles = map[string]terminal.Style{"+": terminal.Good, "-": terminal.Bad, "~": terminal.Note}

// verdict says what the API server would do.
func (r *Result) verdict() (verdict string, style terminal.Style) {
	verdict, style = "allowed", terminal.Good
	switch {
	case r.Denied != nil:
		verdict, style = "refused", terminal.Bad
	case len(r.Changes) > 0:
		verdict = "allowed, changed"
	}
	if len(r.Unknown) > 0 {
		verdict, style = verdict+", as far as is known", terminal.Warn
	}
	return verdict, style
}

func (s *Step) heading() string {
	for _, p := range phases {
		if p.phase == s.Phase {
			if s.Again {
				title, _, _ := strings.Cut(p.title, ",")
				return title + ", reinvoked"
			}
			return p.title
		}
	}
	return string(s.Phase)
}

func (s *Step) title() string {
	if s.Param == "" {
		return s.Name
	}
	return s.Name + " (parameter " + s.Param + ")"
}

// describe describes a change, and its origin if that is known.
func (change *Change) describe() (text, origin string) {
	path := manifest.FieldPath(jsontext.Pointer(change.Path))
	switch change.Op {
	case jsonpatch.Remove:
		text = "- " + path
	case jsonpatch.Add:
		text = "+ " + path + " = " + string(change.Value)
	case jsonpatch.Replace:
		text = "~ " + path + " = " + string(change.Value)
	default:
		text = "~ " + path + " from " + manifest.FieldPath(jsontext.Pointer(change.From))
	}
	if change.Origin != "" {
		origin = "   # " + change.Origin
	}
	return text, origin
}

// The rule IDs of a report.
const (
	ruleRefused = "refused"
	ruleWarning = "warning"
	ruleUnknown = "unknown"
)

// Entries returns a report's entries for the steps, and its rules. About is the object of the request. What is
// not known is an error, unless that is allowed or the API server has decided.
func (r *Result) Entries(about *manifest.Object, allowUnknown bool) ([]report.Entry, []report.Rule) {
	file, line := about.Position("")
	var entries []report.Entry
	unknown, refused := report.Error, false
	if allowUnknown || len(r.Unknown) == 0 {
		unknown = report.Warning
	}
	for _, s := range r.Steps {
		e := report.Entry{Suite: about.Title(), Name: s.title(), Level: report.Pass, File: file, Line: line, Message: s.Name + ": " + string(s.Outcome)}
		switch s.Outcome {
		case Denied, Failed:
			e.Rule, e.Level, refused = ruleRefused, report.Failure, true
		case Warned:
			e.Rule, e.Level = ruleWarning, report.Warning
		case Unknown:
			e.Rule, e.Level = ruleUnknown, unknown
		}
		e.Details = strings.Join(s.Messages, "\n")
		entries = append(entries, e)
	}
	add := func(name, rule string, level report.Level, message string) {
		entries = append(entries, report.Entry{Suite: about.Title(), Name: name, Rule: rule, Level: level, File: file, Line: line, Message: message})
	}
	for _, text := range r.Unknown {
		if !slices.ContainsFunc(r.Steps, func(s *Step) bool { return s.Outcome == Unknown && strings.HasPrefix(text, s.Name+": ") }) {
			add("unknown inputs", ruleUnknown, unknown, "not known: "+text)
		}
	}
	if r.Denied != nil && !refused {
		add("the request", ruleRefused, report.Failure, "refused: "+r.Denied.Message)
	}
	docs := report.DocsURI("chain.md")
	return entries, []report.Rule{
		{ID: ruleRefused, What: "A policy or webhook refuses the request.", URI: docs},
		{ID: ruleWarning, What: "A policy or webhook warns the user.", URI: docs},
		{ID: ruleUnknown, What: "What a policy or webhook does is not known.", URI: docs},
	}
}

// Outputs are the formats of a result; those of package report are for continuous integration.
var Outputs = append(slices.Clone(cli.TextOrJSON), report.Formats...)

// Print prints a result in one of [Outputs]. About is the object of the request.
func (r *Result) Print(out io.Writer, format, operation string, about *manifest.Object, all, allowUnknown bool) error {
	switch {
	case format == "json" || format == "yaml":
		return cli.PrintAs(out, format, r)
	case slices.Contains(report.Formats, format):
		written := report.Report{Tool: "sallyport chain", Version: cli.BuildVersion()}
		written.Entries, written.Rules = r.Entries(about, allowUnknown)
		return written.Write(out, format)
	}
	return r.PrintText(out, operation+" "+about.Title(), all)
}

// Verdict returns the exit status of a result that has been printed: nil, [cli.ExitDenied], or an error if
// it depends on what is not known, and that is not allowed.
func (r *Result) Verdict(allowUnknown bool) error {
	if err := r.ErrUnknown(); err != nil && !allowUnknown {
		return err
	}
	if r.Denied != nil {
		return cli.ExitDenied
	}
	return nil
}

// ErrUnknown returns an error if the result depends on what is not known.
func (r *Result) ErrUnknown() error { return cli.ErrUnknown(r.Unknown) }
