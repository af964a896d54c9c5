// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// Operators of node selector requirements (k8s.io/api/core/v1, NodeSelectorOperator).
const (
	opIn           = "In"
	opNotIn        = "NotIn"
	opExists       = "Exists"
	opDoesNotExist = "DoesNotExist"
)

// A requirement is one expression about a node's labels.
type requirement struct {
	key, operator string
	values        []string
	// raw are its bytes, original or to be written.
	raw jsontext.Value
}

// newRequirement encodes the fields in the order of the API type.
func newRequirement(key, operator string, values ...string) requirement {
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
	return requirement{key: key, operator: operator, values: values, raw: append(raw, '}')}
}

// same reports whether both require the same, ignoring the order of values.
func (r *requirement) same(other *requirement) bool {
	if r.key != other.key || r.operator != other.operator || len(r.values) != len(other.values) {
		return false
	}
	if slices.Equal(r.values, other.values) {
		return true
	}
	a, b := slices.Clone(r.values), slices.Clone(other.values)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// contradicts reports whether no node can meet both.
func (r *requirement) contradicts(other *requirement) bool {
	if r.key != other.key {
		return false
	}
	switch {
	case r.operator == opIn && other.operator == opIn:
		return !slices.ContainsFunc(r.values, func(v string) bool { return slices.Contains(other.values, v) })
	case r.operator == opIn && other.operator == opNotIn:
		return !slices.ContainsFunc(r.values, func(v string) bool { return !slices.Contains(other.values, v) })
	case r.operator == opNotIn && other.operator == opIn:
		return other.contradicts(r)
	case r.operator == opDoesNotExist:
		return other.operator == opIn || other.operator == opExists || other.operator == "Gt" || other.operator == "Lt"
	case other.operator == opDoesNotExist:
		return other.contradicts(r)
	}
	return false
}

// meets reports whether a node with these labels meets the requirement. Gt and Lt are
// not supported and never met.
func (r *requirement) meets(labels map[string]string) bool {
	value, there := labels[r.key]
	switch r.operator {
	case opIn:
		return there && slices.Contains(r.values, value)
	case opNotIn:
		return !there || !slices.Contains(r.values, value)
	case opExists:
		return there
	case opDoesNotExist:
		return !there
	}
	return false
}

// String is for messages. It contains no values except "true".
func (r *requirement) String() string {
	if r.operator == opIn && len(r.values) == 1 && r.values[0] == "true" {
		return r.key
	}
	return r.key + " " + r.operator
}

// A term is a list of requirements that a node must all meet. No node meets an empty
// term.
type term struct {
	expressions []requirement
	fields      []requirement
	// raw are the original bytes; nil for a new term.
	raw jsontext.Value
	// index is the original index.
	index int
	// added are the requirements added to the original ones.
	added []requirement
}

func (t *term) empty() bool { return len(t.expressions) == 0 && len(t.fields) == 0 }

// has reports whether the term has the requirement.
func (t *term) has(wanted *requirement) bool {
	return slices.ContainsFunc(t.expressions, func(r requirement) bool { return r.same(wanted) })
}

func (t *term) hasAll(wanted []requirement) bool {
	for i := range wanted {
		if !t.has(&wanted[i]) {
			return false
		}
	}
	return true
}

// with returns the term with missing requirements added.
func (t *term) with(wanted []requirement) term {
	out := term{expressions: slices.Clip(t.expressions), fields: t.fields, raw: t.raw, index: t.index, added: slices.Clip(t.added)}
	for i := range wanted {
		if !out.has(&wanted[i]) {
			out.expressions = append(out.expressions, wanted[i])
			out.added = append(out.added, wanted[i])
		}
	}
	return out
}

// contradiction returns a key on which the term contradicts itself or the node
// selector, or "".
func (t *term) contradiction(selector []requirement) string {
	for i := range t.expressions {
		for _, others := range [][]requirement{t.expressions[i+1:], selector} {
			for j := range others {
				if t.expressions[i].contradicts(&others[j]) {
					return t.expressions[i].key
				}
			}
		}
	}
	return ""
}

// meets reports whether a node with these labels meets the term. It ignores fields.
func (t *term) meets(labels map[string]string) bool {
	for i := range t.expressions {
		if !t.expressions[i].meets(labels) {
			return false
		}
	}
	return !t.empty()
}

// encode encodes a term. Original content keeps its bytes.
func (t *term) encode() []byte {
	out := []byte(`{"matchExpressions":[`)
	for i, r := range t.expressions {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, r.raw...)
	}
	out = append(out, ']')
	if len(t.fields) > 0 {
		out = append(out, `,"matchFields":[`...)
		for i, r := range t.fields {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, r.raw...)
		}
		out = append(out, ']')
	}
	// Unknown members.
	r := rawjson.NewReader(t.raw)
	r.Object(func(field []byte) {
		if name := string(field); name != "matchExpressions" && name != "matchFields" {
			out = append(append(rawjson.AppendString(append(out, ','), name), ':'), r.Value()...)
		}
	})
	return append(out, '}')
}

// parseTerms parses a list of node selector terms.
func parseTerms(raw jsontext.Value) []term {
	var terms []term
	r := rawjson.NewReader(raw)
	r.Array(func(index int) {
		terms = append(terms, parseTerm(r.Value()))
		terms[index].index = index
	})
	return terms
}

func parseTerm(raw jsontext.Value) term {
	t := term{raw: raw}
	r := rawjson.NewReader(raw)
	r.Object(func(field []byte) {
		switch string(field) {
		case "matchExpressions":
			t.expressions = parseRequirements(&r)
		case "matchFields":
			t.fields = parseRequirements(&r)
		}
	})
	return t
}

func parseRequirements(r *rawjson.Reader) []requirement {
	var out []requirement
	r.Array(func(int) {
		start := r.Offset()
		var q requirement
		r.Object(func(field []byte) {
			switch string(field) {
			case "key":
				q.key = text(r)
			case "operator":
				q.operator = text(r)
			case "values":
				r.Array(func(int) { q.values = append(q.values, text(r)) })
			}
		})
		q.raw = r.Since(start)
		out = append(out, q)
	})
	return out
}

// alternatives are lists of requirements. A node must meet one list.
type alternatives [][]requirement

// and returns the alternatives that meet one of each, without duplicates.
func (a alternatives) and(b alternatives) alternatives {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	var out alternatives
	for _, x := range a {
		for _, y := range b {
			t := term{}
			t = t.with(x)
			t = t.with(y)
			out = out.or(t.expressions)
		}
	}
	return out
}

// or adds a list unless it exists.
func (a alternatives) or(list []requirement) alternatives {
	t := term{expressions: list}
	for _, other := range a {
		if len(other) == len(list) && t.hasAll(other) {
			return a
		}
	}
	return append(a, list)
}

// keys names the keys of a list, for messages.
func keys(list []requirement) string {
	if len(list) == 1 {
		return list[0].String()
	}
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].String()
	}
	return strings.Join(names, ", ")
}
