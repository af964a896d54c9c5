// SPDX-License-Identifier: Apache-2.0

// Package roundtrip converts objects that exist to each version of their kind and back, and
// reports what is lost. It writes nothing.
package roundtrip

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// Report is what was found, by the way of conversion and the path. The zero value is empty.
type Report struct {
	objects, skipped, bad int
	found                 map[place]*finding
}

// place is where something is not as it was. Path is empty if the object cannot be converted.
type place struct {
	kind, from, to, path, change string
}

type finding struct {
	objects int
	example string // the first object, and what is wrong with it
}

// Objects is how many were converted.
func (r *Report) Objects() int { return r.objects }

// Bad is how many of them lose something, or cannot be converted.
func (r *Report) Bad() int { return r.bad }

// Check converts one object, as the converter of its kind does, and notes what is lost. Source
// says where the object comes from. An object for which there is no converter is skipped.
func (r *Report) Check(ctx context.Context, converters []conversion.Converter, raw []byte, source string) error {
	var head struct {
		APIVersion, Kind string
		Metadata         struct{ Namespace, Name string }
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	version, err := schema.ParseGroupVersion(head.APIVersion)
	if err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	i := slices.IndexFunc(converters, func(c conversion.Converter) bool {
		return c.Kind() == schema.GroupKind{Group: version.Group, Kind: head.Kind}
	})
	if i < 0 {
		r.skipped++
		return nil
	}
	r.objects++
	name := strings.TrimPrefix(head.Metadata.Namespace+"/"+head.Metadata.Name, "/")
	if source != "" {
		name += " in " + source
	}
	good := true
	for _, to := range converters[i].Versions() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if to == version.Version {
			continue
		}
		at := place{kind: head.Kind, from: version.Version, to: to}
		differences, err := converters[i].RoundTrip(ctx, raw, to)
		if unanswered := (*unansweredError)(nil); errors.As(err, &unanswered) {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err != nil {
			r.note(at, name+": "+err.Error())
			good = false
			continue
		}
		seen := map[place]bool{} // elements of one list count once
		for _, difference := range differences {
			good = false
			at.path, at.change = general(difference.Path), difference.Change
			if !seen[at] {
				seen[at] = true
				r.note(at, name+": "+difference.Path)
			}
		}
	}
	if !good {
		r.bad++
	}
	return nil
}

func (r *Report) note(at place, example string) {
	if r.found == nil {
		r.found = map[place]*finding{}
	}
	if r.found[at] == nil {
		r.found[at] = &finding{example: example}
	}
	r.found[at].objects++
}

// general is a JSON pointer for all elements of a list.
func general(pointer string) string {
	tokens := strings.Split(pointer, "/")
	for i, token := range tokens {
		if token != "" && strings.Trim(token, "0123456789") == "" {
			tokens[i] = "*"
		}
	}
	return strings.Join(tokens, "/")
}

// Print writes a line for each kind of problem, with the first object that has it.
func (r *Report) Print(out io.Writer) {
	places := make([]place, 0, len(r.found))
	for at := range r.found {
		places = append(places, at)
	}
	slices.SortStableFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.path, b.path), cmp.Compare(a.change, b.change))
	})
	for _, at := range places {
		f := r.found[at]
		way, what := at.from+" to "+at.to, "cannot be converted"
		if at.path != "" {
			way, what = way+" and back", at.path+" "+at.change
		}
		_, _ = fmt.Fprintf(out, "%s, %s: %s in %s, first %s\n", at.kind, way, what, cli.Count(f.objects, "object", "objects"), manifest.Printable(f.example))
	}
}
