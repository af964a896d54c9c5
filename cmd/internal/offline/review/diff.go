// SPDX-License-Identifier: Apache-2.0

package review

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// A Hunk is a range of lines of an object in YAML that changed, with unchanged lines around
// them.
type Hunk struct {
	// From and To are the numbers of its first line before and after the change.
	From, To int
	Lines    []Line
}

// A Line is a line before the change, after it, or both.
type Line struct {
	Kind udiff.OpKind
	Text string
	// Source is the origin of the change that begins at this line.
	Source string
	// Cause is the origin of the change that the line is part of. It is empty for a line that
	// is as it was, or whose origin is not known.
	Cause string
}

// Hunks compares an object in JSON before and after a change, with as many unchanged lines as
// context says. OriginsBefore are the origins of fields in the object before; nil if there are
// none.
func Hunks(before, after jsontext.Value, originsBefore, origins []admission.Origin, context int) ([]Hunk, error) {
	was, err := manifest.YAML(before)
	if err != nil {
		return nil, err
	}
	is, err := manifest.YAML(after)
	if err != nil || string(was) == string(is) {
		return nil, err
	}
	sourcesBefore, sourcesAfter, err := sources(was, is, origins)
	if err == nil && originsBefore != nil {
		sourcesBefore, err = sourcesByLine(was, originsBefore)
	}
	if err != nil {
		return nil, err
	}
	causesBefore, causesAfter := causes(string(was), sourcesBefore), causes(string(is), sourcesAfter)
	unified, err := udiff.ToUnifiedDiff("", "", string(was), udiff.Lines(string(was), string(is)), min(context, bytes.Count(was, []byte("\n"))))
	if err != nil {
		return nil, err
	}
	var hunks []Hunk
	shift := 0 // lines inserted minus lines deleted so far
	for _, found := range unified.Hunks {
		from, to := found.FromLine, found.FromLine+shift
		hunk := Hunk{From: from, To: to}
		for _, line := range found.Lines {
			shown := Line{Kind: line.Kind, Text: strings.TrimSuffix(line.Content, "\n")}
			switch line.Kind {
			case udiff.Delete:
				shown.Source, shown.Cause = sourcesBefore[from], causesBefore[from]
				from++
				shift--
			case udiff.Insert:
				shown.Source, shown.Cause = sourcesAfter[to], causesAfter[to]
				to++
				shift++
			default:
				from++
				to++
			}
			hunk.Lines = append(hunk.Lines, shown)
		}
		hunks = append(hunks, hunk)
	}
	return hunks, nil
}

// Unchanged returns the lines of an object in JSON.
func Unchanged(object jsontext.Value) ([]Line, error) {
	document, err := manifest.YAML(object)
	if err != nil {
		return nil, err
	}
	var lines []Line
	for text := range strings.Lines(string(document)) {
		lines = append(lines, Line{Kind: udiff.Equal, Text: strings.TrimSuffix(text, "\n")})
	}
	return lines, nil
}

// causes extends the origins of lines to the lines below them that are part of the same value:
// those with more indentation, and the elements of a list, which have none of their own.
func causes(document string, sources map[int]string) map[int]string {
	type block struct {
		indent  int
		element bool
		source  string
	}
	var open []block
	all := map[int]string{}
	number := 0
	for text := range strings.Lines(document) {
		number++
		rest := strings.TrimLeft(text, " ")
		indent, element := len(text)-len(rest), strings.HasPrefix(rest, "- ")
		for rest != "\n" && len(open) > 0 {
			last := open[len(open)-1]
			if indent > last.indent || indent == last.indent && element && !last.element {
				break
			}
			open = open[:len(open)-1]
		}
		if source := sources[number]; source != "" {
			open = append(open, block{indent, element, source})
		}
		if len(open) > 0 {
			all[number] = open[len(open)-1].source
		}
	}
	return all
}

// Diff shows what changed in an object. The first line of each change also shows its origin.
func Diff(o *Outcome, color bool) (string, error) {
	paint := func(code, text string) string {
		if !color {
			return text
		}
		return "\x1b[" + code + "m" + text + "\x1b[0m"
	}
	hunks, err := Hunks(o.Before, o.After, o.OriginsBefore, o.Origins(), udiff.DefaultContextLines)
	if err != nil {
		return "", err
	}
	if len(hunks) == 0 {
		return paint("1", manifest.PrintableLine(o.Object.Title())+": "+o.AsFarAsKnown("allowed, unchanged")) + "\n", nil
	}
	var out strings.Builder
	_, _ = fmt.Fprintln(&out, paint("1", manifest.PrintableLine(o.Object.Title()+": "+cmp.Or(o.Verdict, o.AsFarAsKnown("allowed, changed by "+strings.Join(o.Changed(), ", "))))))
	for _, hunk := range hunks {
		_, _ = fmt.Fprintln(&out, paint("36", hunk.header()))
		for _, line := range hunk.Lines {
			switch line.Kind {
			case udiff.Delete:
				out.WriteString(paint("31", "-"+manifest.PrintableLine(line.Text)) + comment(paint, line.Source) + "\n")
			case udiff.Insert:
				out.WriteString(paint("32", "+"+manifest.PrintableLine(line.Text)) + comment(paint, line.Source) + "\n")
			default:
				out.WriteString(" " + manifest.PrintableLine(line.Text) + "\n")
			}
		}
	}
	return out.String(), nil
}

// AsFarAsKnown says of a verdict that not all of its inputs are known, if that is so.
func (o *Outcome) AsFarAsKnown(verdict string) string {
	if o.Unanswered != "" || len(o.Unknown) > 0 {
		return verdict + ", as far as is known"
	}
	return verdict
}

func (h Hunk) header() string {
	from, to := 0, 0
	for _, line := range h.Lines {
		if line.Kind != udiff.Insert {
			from++
		}
		if line.Kind != udiff.Delete {
			to++
		}
	}
	return fmt.Sprintf("@@ -%d,%d +%d,%d @@", h.From, from, h.To, to)
}

func comment(paint func(code, text string) string, source string) string {
	if source == "" {
		return ""
	}
	return paint("2", "   # "+manifest.PrintableLine(source))
}

// sources maps lines of two YAML documents to the origin of the change that begins there.
//
// The path of a removal points into the document before, the path of an addition into the
// document after. One path can be both, for example in a list that loses its second element and
// gains another. An origin does not say which it is. A removal comes before an addition.
func sources(before, after []byte, origins []admission.Origin) (inBefore, inAfter map[int]string, err error) {
	if inAfter, err = sourcesByLine(after, origins); err != nil {
		return nil, nil, err
	}
	removalsLast := slices.Clone(origins)
	slices.Reverse(removalsLast)
	inBefore, err = sourcesByLine(before, removalsLast)
	return inBefore, inAfter, err
}

// sourcesByLine finds the line at which an origin's path begins. It skips paths that the
// document does not have. If several origins share a line, the last one wins.
func sourcesByLine(document []byte, origins []admission.Origin) (map[int]string, error) {
	pointers := make([]jsontext.Pointer, len(origins))
	for i, origin := range origins {
		pointers[i] = jsontext.Pointer(origin.Path)
	}
	lines, err := manifest.Lines(document, pointers)
	if err != nil {
		return nil, err
	}
	sources := map[int]string{}
	for i, origin := range origins {
		if line, ok := lines[pointers[i]]; ok {
			sources[line] = origin.Source
		}
	}
	return sources, nil
}
