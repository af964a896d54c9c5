// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"sigs.k8s.io/yaml"
)

// The forms in which review prints what came out.
const (
	outputDiff   = "diff"
	outputYAML   = "yaml"
	outputJSON   = "json"
	outputPatch  = "patch"
	outputReview = "review"
)

var reviewOutputs = []string{outputDiff, outputYAML, outputJSON, outputPatch, outputReview}

// A reviewPrinter prints outcomes: what was asked for to out, the rest to notes.
type reviewPrinter struct {
	out, notes io.Writer
	output     string
	color      bool
	printed    int
}

func (p *reviewPrinter) print(o *outcome) error {
	for _, warning := range o.warnings {
		note(p.notes, "warning: %s: %s", o.object.title(), warning)
	}
	if len(o.called) == 0 {
		note(p.notes, "note: %s: no webhook is called for %s of %s", o.object.at(), o.req.Operation, o.object.title())
	}
	if o.denied != nil {
		note(p.notes, "denied: %s: %s: %s", o.object.title(), o.deniedBy, o.denied.Message)
		if p.output != outputReview {
			return nil
		}
	}
	text, err := p.format(o)
	if err != nil || text == "" {
		return err
	}
	if p.output == outputYAML && p.printed > 0 {
		text = "---\n" + text
	}
	p.printed++
	_, err = io.WriteString(p.out, text)
	return err
}

func (p *reviewPrinter) format(o *outcome) (string, error) {
	switch p.output {
	case outputYAML:
		out, err := yaml.JSONToYAML(o.after)
		return string(out), err
	case outputJSON:
		return indent(o.after)
	case outputPatch:
		return indent(joinPatches(o.patches))
	case outputReview:
		var all strings.Builder
		for _, answer := range o.answers {
			text, err := indent(answer)
			if err != nil {
				return "", err
			}
			all.WriteString(text)
		}
		return all.String(), nil
	default:
		return diff(o, p.color)
	}
}

// joinPatches makes one JSON Patch of several that apply one after the other.
func joinPatches(patches []jsontext.Value) jsontext.Value {
	joined := []byte{'['}
	for _, patch := range patches {
		operations := patch[1 : len(patch)-1]
		if len(joined) > 1 && len(operations) > 0 {
			joined = append(joined, ',')
		}
		joined = append(joined, operations...)
	}
	return append(joined, ']')
}

// indent formats a value for people. Characters that something on the way has
// escaped without need are themselves again: "a & b", not "a \u0026 b".
func indent(value jsontext.Value) (string, error) {
	out := value.Clone()
	if err := out.Indent(jsontext.WithIndent("  "), jsontext.PreserveRawStrings(false)); err != nil {
		return "", err
	}
	return string(out) + "\n", nil
}
