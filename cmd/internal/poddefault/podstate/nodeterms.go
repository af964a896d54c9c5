// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/internal/kube/nodeterms"
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
var nodeTermFields = [2]string{nodeterms.Expressions, nodeterms.Fields}

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
	term := &parsedTerm{{byKey: map[string][]int{}}, {byKey: map[string][]int{}}}
	nodeterms.Each(raw, func(field string, requirement jsontext.Value) bool {
		if b.Did(meta.WorkOfVisit); b.Spent() {
			return false
		}
		b.Did(len(requirement) + meta.WorkOfComparison)
		e := expression{raw: requirement, tree: plan.Decode(requirement)}
		if object, ok := e.tree.(map[string]any); ok {
			key, _ := object["key"].(string)
			operator, _ := object["operator"].(string)
			e.key = operator + " " + key
		}
		list := &term[slices.Index(nodeTermFields[:], field)]
		list.byKey[e.key] = append(list.byKey[e.key], len(list.expressions))
		list.expressions = append(list.expressions, e)
		return true
	})
	return term
}

func (t *parsedTerm) Empty() bool { return len(t[0].expressions)+len(t[1].expressions) == 0 }

// Missing returns the expressions of a wanted term that this one lacks.
func (t *parsedTerm) Missing(wanted *parsedTerm, b *meta.Budget) []nodeterms.List {
	var out []nodeterms.List
	for i, field := range nodeTermFields {
		present, list := &t[i], nodeterms.List{Field: field}
		for _, w := range wanted[i].expressions {
			has := func(at int) bool {
				b.Did(meta.WorkOfVisit + len(w.raw)/8)
				return len(plan.Unmet(nil, "", w.tree, present.expressions[at].tree)) == 0
			}
			if b.Did(meta.WorkOfVisit); b.Spent() {
				return nil
			}
			if !slices.ContainsFunc(present.byKey[w.key], has) {
				list.Values = append(list.Values, w.raw)
			}
		}
		if len(list.Values) > 0 {
			out = append(out, list)
		}
	}
	return out
}
