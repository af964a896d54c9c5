// SPDX-License-Identifier: Apache-2.0

package nodeterms

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// A Term is a list of requirements that a node must all meet. No node meets an empty
// term.
type Term struct {
	Expressions []Requirement
	Fields      []Requirement
	// Raw are the original bytes; nil for a new term.
	Raw jsontext.Value
	// Index is the original index.
	Index int
	// Added are the requirements added to the original ones.
	Added []Requirement
}

// Empty reports whether no node meets the term.
func (t *Term) Empty() bool { return len(t.Expressions) == 0 && len(t.Fields) == 0 }

// Has reports whether the term has the requirement.
func (t *Term) Has(wanted *Requirement) bool {
	return slices.ContainsFunc(t.Expressions, func(r Requirement) bool { return r.Same(wanted) })
}

// HasAll reports whether the term has all requirements.
func (t *Term) HasAll(wanted []Requirement) bool {
	for i := range wanted {
		if !t.Has(&wanted[i]) {
			return false
		}
	}
	return true
}

// With returns the term with missing requirements added.
func (t *Term) With(wanted []Requirement) Term {
	out := Term{Expressions: slices.Clip(t.Expressions), Fields: t.Fields, Raw: t.Raw, Index: t.Index, Added: slices.Clip(t.Added)}
	for i := range wanted {
		if !out.Has(&wanted[i]) {
			out.Expressions = append(out.Expressions, wanted[i])
			out.Added = append(out.Added, wanted[i])
		}
	}
	return out
}

// Contradiction returns a key on which the term contradicts itself or the node
// selector, or "".
func (t *Term) Contradiction(selector []Requirement) string {
	for i := range t.Expressions {
		for _, others := range [][]Requirement{t.Expressions[i+1:], selector} {
			for j := range others {
				if t.Expressions[i].Contradicts(&others[j]) {
					return t.Expressions[i].Key
				}
			}
		}
	}
	return ""
}

// Meets reports whether a node with these labels meets the term. It ignores fields.
func (t *Term) Meets(labels map[string]string) bool {
	for i := range t.Expressions {
		if !t.Expressions[i].Meets(labels) {
			return false
		}
	}
	return !t.Empty()
}

// Encode encodes a term. Original content keeps its bytes.
func (t *Term) Encode() []byte {
	switch {
	case t.Raw == nil:
		return append(AppendRequirements([]byte(`{"`+Expressions+`":`), t.Expressions), '}')
	case len(t.Added) == 0:
		return t.Raw
	}
	return Extend(t.Raw, []List{{Expressions, raws(t.Added)}})
}

// Alternatives are lists of requirements. A node must meet one list.
type Alternatives [][]Requirement

// And returns the alternatives that meet one of each, without duplicates.
func (a Alternatives) And(b Alternatives) Alternatives {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	var out Alternatives
	for _, x := range a {
		for _, y := range b {
			t := Term{}
			t = t.With(x)
			t = t.With(y)
			out = out.Or(t.Expressions)
		}
	}
	return out
}

// Or adds a list unless it exists.
func (a Alternatives) Or(list []Requirement) Alternatives {
	t := Term{Expressions: list}
	for _, other := range a {
		if len(other) == len(list) && t.HasAll(other) {
			return a
		}
	}
	return append(a, list)
}
