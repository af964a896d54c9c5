// SPDX-License-Identifier: Apache-2.0

package review

import (
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/internal/manifest"
	"github.com/sallyport-io/sallyport/internal/replay"
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
var Outputs = []string{OutputDiff, OutputYAML, OutputJSON, OutputPatch, OutputReview}

// A Printer prints outcomes: what was asked for to out, the rest to notes.
type Printer struct {
	Out, Notes io.Writer
	Output     string // one of Outputs
	Color      bool

	printed int
}

// Print prints an outcome. Of a denied one there is only a note, but for OutputReview.
func (p *Printer) Print(o *Outcome) error {
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

func (p *Printer) format(o *Outcome) (string, error) {
	switch p.Output {
	case OutputYAML:
		out, err := yaml.JSONToYAML(o.After)
		return string(out), err
	case OutputJSON:
		return manifest.Indent(o.After)
	case OutputPatch:
		return manifest.Indent(joinPatches(o.Calls))
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

// joinPatches makes one JSON Patch of those that apply one after the other.
func joinPatches(calls []replay.Call) jsontext.Value {
	joined := []byte{'['}
	for _, call := range calls {
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
