// SPDX-License-Identifier: Apache-2.0

// Package nodeterms has node selector terms in raw bytes: of node affinities of pods, runtimes and
// volumes. It reads them, tells what they have in common, and adds to them. It knows nothing of the
// objects that have them.
package nodeterms

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// Operators of node selector requirements (k8s.io/api/core/v1, NodeSelectorOperator).
const (
	In           = "In"
	NotIn        = "NotIn"
	Exists       = "Exists"
	DoesNotExist = "DoesNotExist"
)

// A Requirement is one expression about a node's labels.
type Requirement struct {
	Key, Operator string
	Values        []string
	// Raw are its bytes, original or to be written.
	Raw jsontext.Value
}

// New encodes the fields in the order of the API type.
func New(key, operator string, values ...string) Requirement {
	raw := append([]byte(`{"key":`), rawjson.AppendString(nil, key)...)
	raw = append(raw, `,"operator":`...)
	raw = rawjson.AppendString(raw, operator)
	for i, value := range values {
		if i == 0 {
			raw = append(raw, `,"values":[`...)
		} else {
			raw = append(raw, ',')
		}
		raw = rawjson.AppendString(raw, value)
	}
	if len(values) > 0 {
		raw = append(raw, ']')
	}
	return Requirement{Key: key, Operator: operator, Values: values, Raw: append(raw, '}')}
}

// Same reports whether both require the same, ignoring the order of values.
func (r *Requirement) Same(other *Requirement) bool {
	if r.Key != other.Key || r.Operator != other.Operator || len(r.Values) != len(other.Values) {
		return false
	}
	if slices.Equal(r.Values, other.Values) {
		return true
	}
	a, b := slices.Clone(r.Values), slices.Clone(other.Values)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// Contradicts reports whether no node can meet both.
func (r *Requirement) Contradicts(other *Requirement) bool {
	if r.Key != other.Key {
		return false
	}
	switch {
	case r.Operator == In && other.Operator == In:
		return !slices.ContainsFunc(r.Values, func(v string) bool { return slices.Contains(other.Values, v) })
	case r.Operator == In && other.Operator == NotIn:
		return !slices.ContainsFunc(r.Values, func(v string) bool { return !slices.Contains(other.Values, v) })
	case r.Operator == NotIn && other.Operator == In:
		return other.Contradicts(r)
	case r.Operator == DoesNotExist:
		return other.Operator == In || other.Operator == Exists || other.Operator == "Gt" || other.Operator == "Lt"
	case other.Operator == DoesNotExist:
		return other.Contradicts(r)
	}
	return false
}

// Meets reports whether a node with these labels meets the requirement. Gt and Lt are
// not supported and never met.
func (r *Requirement) Meets(labels map[string]string) bool {
	value, there := labels[r.Key]
	switch r.Operator {
	case In:
		return there && slices.Contains(r.Values, value)
	case NotIn:
		return !there || !slices.Contains(r.Values, value)
	case Exists:
		return there
	case DoesNotExist:
		return !there
	}
	return false
}

// String is for messages. It contains no values except "true".
func (r *Requirement) String() string {
	if r.Operator == In && len(r.Values) == 1 && r.Values[0] == "true" {
		return r.Key
	}
	return r.Key + " " + r.Operator
}

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

func (t *Term) Empty() bool { return len(t.Expressions) == 0 && len(t.Fields) == 0 }

// Has reports whether the term has the requirement.
func (t *Term) Has(wanted *Requirement) bool {
	return slices.ContainsFunc(t.Expressions, func(r Requirement) bool { return r.Same(wanted) })
}

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
	out := []byte(`{"matchExpressions":[`)
	for i, r := range t.Expressions {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, r.Raw...)
	}
	out = append(out, ']')
	if len(t.Fields) > 0 {
		out = append(out, `,"matchFields":[`...)
		for i, r := range t.Fields {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, r.Raw...)
		}
		out = append(out, ']')
	}
	// Unknown members.
	r := rawjson.NewReader(t.Raw)
	r.Object(func(field []byte) {
		if name := string(field); name != "matchExpressions" && name != "matchFields" {
			out = append(append(rawjson.AppendString(append(out, ','), name), ':'), r.Value()...)
		}
	})
	return append(out, '}')
}

// ParseTerms parses a list of node selector terms.
func ParseTerms(raw jsontext.Value) []Term {
	var terms []Term
	r := rawjson.NewReader(raw)
	r.Array(func(index int) {
		terms = append(terms, ParseTerm(r.Value()))
		terms[index].Index = index
	})
	return terms
}

// ParseTerm parses one.
func ParseTerm(raw jsontext.Value) Term {
	t := Term{Raw: raw}
	r := rawjson.NewReader(raw)
	r.Object(func(field []byte) {
		switch string(field) {
		case "matchExpressions":
			t.Expressions = parseRequirements(&r)
		case "matchFields":
			t.Fields = parseRequirements(&r)
		}
	})
	return t
}

func parseRequirements(r *rawjson.Reader) []Requirement {
	var out []Requirement
	r.Array(func(int) {
		start := r.Offset()
		var q Requirement
		r.Object(func(field []byte) {
			switch string(field) {
			case "key":
				q.Key = text(r)
			case "operator":
				q.Operator = text(r)
			case "values":
				r.Array(func(int) { q.Values = append(q.Values, text(r)) })
			}
		})
		q.Raw = r.Since(start)
		out = append(out, q)
	})
	return out
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

// Keys names the keys of a list, for messages.
func Keys(list []Requirement) string {
	if len(list) == 1 {
		return list[0].String()
	}
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].String()
	}
	return strings.Join(names, ", ")
}

func text(r *rawjson.Reader) string {
	out, _ := r.String()
	return string(out)
}
