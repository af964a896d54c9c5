// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/wire/replay"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// A Field is one that the API server refuses.
type Field struct {
	// Path is as the API server writes it: spec.containers[0].image.
	Path string
	// Origins are what has set it, for people: "PodDefault team-a/proxy". There are none if it is as it was sent.
	Origins []string
}

// named are fields that plugins refuse without naming them, by what their messages begin with.
var named = []struct {
	message *regexp.Regexp
	path    string
}{
	{regexp.MustCompile(`no PriorityClass with name|pods with \S+ priorityClass is not permitted`), "spec.priorityClassName"},
	{regexp.MustCompile(`(?i)error looking up service account|service account .* not found`), "spec.serviceAccountName"},
	{regexp.MustCompile(`(?i)RuntimeClass ".*" not found|conflict: runtimeClass`), "spec.runtimeClassName"},
	{regexp.MustCompile(`the integer value of priority`), "spec.priority"},
}

// Fields returns the fields that a refusal names. Origins say what has set fields of the object; a later one overrides
// an earlier one.
func Fields(refusal *metav1.Status, origins []admission.Origin) []Field {
	var out []Field
	add := func(path string) {
		if !slices.ContainsFunc(out, func(f Field) bool { return f.Path == path }) {
			out = append(out, Field{path, originsOf(pointer(path), origins)})
		}
	}
	if refusal.Details != nil {
		for _, cause := range refusal.Details.Causes {
			if cause.Field != "" && cause.Field != "<nil>" {
				add(cause.Field)
			}
		}
	}
	if len(out) == 0 {
		for _, n := range named {
			if n.message.MatchString(refusal.Message) {
				add(n.path)
			}
		}
	}
	return out
}

// pointer returns the JSON pointer of a path as the API server writes it.
func pointer(path string) string {
	var tokens []string
	for path != "" {
		if rest, ok := strings.CutPrefix(path, "["); ok {
			token, after, _ := strings.Cut(rest, "]")
			tokens, path = append(tokens, token), strings.TrimPrefix(after, ".")
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		tokens, path = append(tokens, path[:end]), strings.TrimPrefix(path[end:], ".")
	}
	return jsonpatch.Pointer(tokens...)
}

// originsOf returns what has set a part of an object: the origin of the smallest part around it, or else those of its
// own parts.
func originsOf(at string, origins []admission.Origin) []string {
	around := -1
	var below []string
	for i, o := range origins {
		switch {
		case replay.Within(at, o.Path):
			if around < 0 || len(o.Path) >= len(origins[around].Path) {
				around = i
			}
		case replay.Within(o.Path, at) && !slices.Contains(below, o.Source):
			below = append(below, o.Source)
		}
	}
	if around >= 0 {
		return []string{origins[around].Source}
	}
	return below
}

// sources returns what has changed an object.
func sources(origins []admission.Origin) []string {
	var out []string
	for _, o := range origins {
		if marks := replay.Within(o.Path, "/metadata/annotations"); !marks && !slices.Contains(out, o.Source) {
			out = append(out, o.Source)
		}
	}
	return out
}

// Explained returns the answer with the origins of refused fields in the message of its status, and whether the refusal
// names any.
func (a *Answer) Explained(origins []admission.Origin) (explained *Answer, found bool) {
	if a.Verdict != Refused {
		return a, false
	}
	out := *a
	out.Status = a.Status.DeepCopy()
	for _, f := range Fields(a.Status, origins) {
		if found = true; len(f.Origins) > 0 {
			out.Status.Message += "; " + f.Path + " comes from " + strings.Join(f.Origins, ", ")
		} else {
			out.Status.Message += "; " + f.Path + " is as it was sent"
		}
	}
	return &out, found
}
