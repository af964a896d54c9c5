// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"slices"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/validate"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/internal/kube/nodeterms"
)

// Narrow adds c's requirements to each term of the pod. Terms are alternatives, so
// adding a term would widen the choice of nodes. If c has several terms, each term of
// the pod is multiplied. It changes nothing and returns false if there would be more than
// [validate.MaxNodeTerms]. Once the bounds are spent it changes nothing either.
func (h *Holder) Narrow(c *plan.Plan) bool {
	if len(c.NodeTerms) == 0 {
		return true
	}
	b := h.Bounds
	if h.Terms == nil {
		h.Terms = &NodeTerms{}
		raw, _ := h.Lookup(NodeTermTokens...)
		r := rawjson.NewReader(raw)
		r.Array(func(i int) {
			if !b.Reads() {
				r.Stop()
				return
			}
			h.Terms.Terms = append(h.Terms.Terms, NodeTerm{Value: r.Value(), Index: i})
		})
	}
	terms := h.Terms.Terms
	wanted := make([]NodeTerm, len(c.NodeTerms))
	for i, value := range c.NodeTerms {
		wanted[i] = NodeTerm{Value: value, Index: -1, Origin: c}
		if len(terms) > 0 {
			wanted[i].Parse(b)
		}
	}
	// Count the terms before creating any.
	satisfied := make([]bool, len(terms))
	n := len(terms)
	if n == 0 {
		n = len(wanted)
	}
	for i := range terms {
		if n > validate.MaxNodeTerms || b.Spent() {
			break
		}
		term := terms[i].Parse(b)
		satisfied[i] = term.Empty() || slices.ContainsFunc(wanted, func(w NodeTerm) bool { return len(term.Missing(w.Parse(b), b)) == 0 })
		if !satisfied[i] {
			n += len(wanted) - 1
		}
	}
	if n > validate.MaxNodeTerms {
		return false
	}
	if b.Spent() {
		return true
	}
	if len(terms) == 0 {
		for _, w := range wanted {
			b.Grow(len(w.Value))
		}
		h.Terms.Terms = wanted
		return true
	}
	narrowed, more := make([]NodeTerm, 0, n), []NodeTerm(nil)
	for i := range terms {
		term := terms[i]
		if satisfied[i] {
			narrowed = append(narrowed, term)
			continue
		}
		for j := range wanted {
			if b.Spent() {
				return true
			}
			lacks := term.Parse(b).Missing(wanted[j].Parse(b), b)
			both := NodeTerm{Value: nodeterms.Extend(term.Value, lacks), Index: -1, Origin: c}
			b.Grow(len(both.Value))
			if j == 0 {
				both.Index = term.Index
				narrowed = append(narrowed, both)
			} else {
				more = append(more, both)
			}
		}
	}
	narrowed = append(narrowed, more...)
	h.Terms.Terms = narrowed
	return true
}
