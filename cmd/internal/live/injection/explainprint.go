// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"io"

	"github.com/go-json-experiment/json"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/internal/cli/terminal"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// PrintAs prints the explanation as JSON, or as a document of a YAML stream.
func (e *Explanation) PrintAs(out io.Writer, format string) error {
	raw, err := json.Marshal(e, json.Deterministic(true))
	if err != nil {
		return err
	}
	if format == "yaml" {
		if raw, err = yaml.JSONToYAML(raw); err == nil {
			_, err = out.Write(append([]byte("---\n"), raw...))
		}
		return err
	}
	text, err := manifest.Indent(raw)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, text)
	return err
}

// PrintText prints the explanation as text.
func (e *Explanation) PrintText(out io.Writer) error {
	text := terminal.NewText(out)
	line := func(format string, args ...any) { text.Line(0, terminal.Plain.Of(manifest.Sprintf(format, args...))) }
	text.Line(0, terminal.Heading.Of(manifest.Sprintf("%s", e.Object)), terminal.Plain.Of(manifest.Sprintf(", in the namespace %s", e.Namespace)))
	if e.Basis != "" {
		line("What each one adds is computed from %s.", e.Basis)
	}
	if e.Note != "" {
		line("Note: %s.", e.Note)
	}
	if len(e.Matching)+len(e.NotMatching)+len(e.Carried) == 0 {
		line("There is no PodDefault for it.")
	}
	list := func(title string, all []explained) {
		if len(all) > 0 {
			text.Line(0, terminal.Heading.Of("\n"+title+":"))
		}
		for i := range all {
			all[i].print(text)
		}
	}
	list("Matching", e.Matching)
	list("Decided when the pod was created, and not for it now", e.Carried)
	if len(e.NotMatching) > 0 {
		text.Line(0, terminal.Heading.Of("\nNot matching:"))
	}
	for _, m := range e.NotMatching {
		text.Line(0, terminal.Plain.Of(manifest.Sprintf("  %s: ", m.Name)), terminal.Quiet.Of(manifest.Sprintf("%s", m.Reason)))
	}
	if e.Datasets != nil {
		e.Datasets.Print(line)
	}
	marked := func(style terminal.Style, word, message string) {
		text.Line(0, style.Of("\n"+word+": "), terminal.Plain.Of(manifest.Sprintf("%s", message)))
	}
	if e.Denied != "" {
		marked(terminal.Bad, "Denied", e.Denied)
	}
	if e.Unknown != "" {
		marked(terminal.Warn, "Unknown", errUnknown.Error()+": "+e.Unknown)
	}
	for _, warning := range e.Warnings {
		marked(terminal.Warn, "Warning", warning)
	}
	line("")
	return text.Flush()
}

// print prints an object that applies, and what it adds.
func (m *explained) print(text *terminal.Text) {
	state := terminal.Good.Of("applied")
	if !m.Applied {
		state = terminal.Warn.Of("not applied")
	}
	detail := ""
	if m.Detail != "" {
		detail = ", " + m.Detail
	}
	text.Line(0, terminal.Plain.Of(manifest.Sprintf("  %s: ", m.Name)), state, terminal.Plain.Of(manifest.Sprintf("%s", detail)))
	for _, added := range m.Adds {
		text.Line(0, terminal.Good.Of("    + "), terminal.Plain.Of(manifest.Sprintf("%s", added)))
	}
}
