// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// NodeTermTokens lead from the spec to the required node terms.
var NodeTermTokens = []string{"affinity", "nodeAffinity", plan.Required, "nodeSelectorTerms"}

// NodeTerms are the required node terms of a pod while PodDefaults narrow them. A node
// must match at least one.
type NodeTerms struct{ Terms []NodeTerm }

// A NodeTerm is one of the alternatives of a required node affinity.
type NodeTerm struct {
	Value  jsontext.Value
	Index  int        // in the pod; -1 for a new term
	Origin *plan.Plan // last to change it; nil if unchanged
	parsed *parsedTerm
}

// Parse parses the term once.
func (t *NodeTerm) Parse(b *meta.Budget) *parsedTerm {
	if t.parsed == nil {
		t.parsed = parseTerm(t.Value, b)
	}
	return t.parsed
}

// nodeTermFields are the two lists of a node term.
var nodeTermFields = [2]string{"matchExpressions", "matchFields"}

// A termList is one of the two lists of a node term, with elements to add.
type termList struct {
	field  string
	values []jsontext.Value
}

// A parsedTerm holds the expressions of both lists of a term.
type parsedTerm [2]struct {
	expressions []expression
	byKey       map[string][]int // positions by key and operator
}

type expression struct {
	raw  jsontext.Value
	tree any
	key  string // with its operator
}

func parseTerm(raw jsontext.Value, b *meta.Budget) *parsedTerm {
	term := &parsedTerm{}
	for i, field := range nodeTermFields {
		list := &term[i]
		list.byKey = map[string][]int{}
		r := rawjson.NewReader(plan.Member(raw, field))
		r.Array(func(at int) {
			if b.Did(meta.WorkOfVisit); b.Spent() {
				r.Stop()
				return
			}
			e := expression{raw: r.Value()}
			b.Did(len(e.raw) + meta.WorkOfComparison)
			e.tree = plan.Decode(e.raw)
			if object, ok := e.tree.(map[string]any); ok {
				key, _ := object["key"].(string)
				operator, _ := object["operator"].(string)
				e.key = operator + " " + key
			}
			list.expressions = append(list.expressions, e)
			list.byKey[e.key] = append(list.byKey[e.key], at)
		})
	}
	return term
}

func (t *parsedTerm) Empty() bool { return len(t[0].expressions)+len(t[1].expressions) == 0 }

// Missing returns the expressions of a wanted term that this one lacks.
func (t *parsedTerm) Missing(wanted *parsedTerm, b *meta.Budget) []termList {
	var out []termList
	for i, field := range nodeTermFields {
		present, list := &t[i], termList{field: field}
		for _, w := range wanted[i].expressions {
			has := func(at int) bool {
				b.Did(meta.WorkOfVisit + len(w.raw)/8)
				return len(plan.Unmet(nil, "", w.tree, present.expressions[at].tree)) == 0
			}
			if b.Did(meta.WorkOfVisit); b.Spent() {
				return nil
			}
			if !slices.ContainsFunc(present.byKey[w.key], has) {
				list.values = append(list.values, w.raw)
			}
		}
		if len(list.values) > 0 {
			out = append(out, list)
		}
	}
	return out
}

func elementsOf(list jsontext.Value) (out []jsontext.Value) {
	r := rawjson.NewReader(list)
	r.Array(func(int) { out = append(out, r.Value()) })
	return out
}

// Extend adds elements to lists of an object and copies everything else.
func Extend(object jsontext.Value, lists []termList) jsontext.Value {
	out := append(make([]byte, 0, 2*len(object)+64), '{')
	appendMember := func(name, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(rawjson.AppendString(out, string(name)), ':')
		out = append(out, value...)
	}
	appendElements := func(elements []jsontext.Value) []byte {
		list := []byte{'['}
		for i, element := range elements {
			if i > 0 {
				list = append(list, ',')
			}
			list = append(list, element...)
		}
		return append(list, ']')
	}
	done := map[string]bool{}
	r := rawjson.NewReader(object)
	r.Object(func(name []byte) {
		field := string(name)
		value := r.Value()
		for _, list := range lists {
			if list.field == field && !done[field] {
				done[field] = true
				value = appendElements(append(elementsOf(value), list.values...))
			}
		}
		appendMember([]byte(field), value)
	})
	for _, list := range lists {
		if !done[list.field] {
			appendMember([]byte(list.field), appendElements(list.values))
		}
	}
	return append(out, '}')
}
