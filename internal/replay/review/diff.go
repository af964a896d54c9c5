// SPDX-License-Identifier: Apache-2.0

package review

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/go-json-experiment/json/jsontext"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/manifest"
)

// Diff shows what changed in an object. The first line of each change also shows its origin.
func Diff(o *Outcome, color bool) (string, error) {
	paint := func(code, text string) string {
		if !color {
			return text
		}
		return "\x1b[" + code + "m" + text + "\x1b[0m"
	}
	before, err := yaml.JSONToYAML(o.Before)
	if err != nil {
		return "", err
	}
	after, err := yaml.JSONToYAML(o.After)
	if err != nil {
		return "", err
	}
	if string(before) == string(after) {
		return paint("1", o.Object.Title()+": allowed, unchanged") + "\n", nil
	}
	sourcesBefore, sourcesAfter, err := sources(before, after, o.Origins())
	if err == nil && o.OriginsBefore != nil {
		sourcesBefore, err = sourcesByLine(before, o.OriginsBefore)
	}
	if err != nil {
		return "", err
	}

	edits := udiff.Lines(string(before), string(after))
	unified, err := udiff.ToUnifiedDiff("", "", string(before), edits, udiff.DefaultContextLines)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	_, _ = fmt.Fprintln(&out, paint("1", o.Object.Title()+": "+cmp.Or(o.Verdict, "allowed, changed by "+strings.Join(o.Changed(), ", "))))
	shift := 0 // lines inserted minus lines deleted so far
	for _, hunk := range unified.Hunks {
		from, to := hunk.FromLine, hunk.FromLine+shift
		_, _ = fmt.Fprintln(&out, paint("36", hunkHeader(hunk, to)))
		for _, line := range hunk.Lines {
			text := strings.TrimSuffix(line.Content, "\n")
			switch line.Kind {
			case udiff.Delete:
				out.WriteString(paint("31", "-"+text) + comment(paint, sourcesBefore[from]) + "\n")
				from++
				shift--
			case udiff.Insert:
				out.WriteString(paint("32", "+"+text) + comment(paint, sourcesAfter[to]) + "\n")
				to++
				shift++
			default:
				out.WriteString(" " + text + "\n")
				from++
				to++
			}
		}
	}
	return out.String(), nil
}

func hunkHeader(hunk *udiff.Hunk, toLine int) string {
	from, to := 0, 0
	for _, line := range hunk.Lines {
		if line.Kind != udiff.Insert {
			from++
		}
		if line.Kind != udiff.Delete {
			to++
		}
	}
	return fmt.Sprintf("@@ -%d,%d +%d,%d @@", hunk.FromLine, from, toLine, to)
}

func comment(paint func(code, text string) string, source string) string {
	if source == "" {
		return ""
	}
	return paint("2", "   # "+manifest.Printable(source))
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
