// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"sigs.k8s.io/yaml"

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
	var text strings.Builder
	line := func(format string, args ...any) {
		text.WriteString(manifest.Sprintf(format, args...) + "\n")
	}
	line("%s, in the namespace %s", e.Object, e.Namespace)
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
			line("\n%s:", title)
		}
		for _, m := range all {
			state := "applied"
			if !m.Applied {
				state = "not applied"
			}
			if m.Detail != "" {
				state += ", " + m.Detail
			}
			line("  %s: %s", m.Name, state)
			for _, added := range m.Adds {
				line("    + %s", added)
			}
		}
	}
	list("Matching", e.Matching)
	list("Decided when the pod was created, and not for it now", e.Carried)
	if len(e.NotMatching) > 0 {
		line("\nNot matching:")
	}
	for _, m := range e.NotMatching {
		line("  %s: %s", m.Name, m.Reason)
	}
	if e.Datasets != nil {
		e.Datasets.Print(line)
	}
	if e.Denied != "" {
		line("\nDenied: %s", e.Denied)
	}
	if e.Unknown != "" {
		line("\nUnknown: %v: %s", errUnknown, e.Unknown)
	}
	for _, warning := range e.Warnings {
		line("\nWarning: %s", warning)
	}
	_, err := io.WriteString(out, text.String()+"\n")
	return err
}
