// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podstate"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/validate"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// narrow adds c's requirements to each term of the pod. Terms are alternatives, so
// adding a term would widen the choice of nodes. If c has several terms, each term of
// the pod is multiplied.
func (ad *adder) narrow(c *plan.Plan) {
	if len(c.NodeTerms) == 0 {
		return
	}
	h, b := &ad.Pod.Spec, &ad.Pod.Bounds
	if h.Terms == nil {
		h.Terms = &podstate.NodeTerms{}
		raw, _ := h.Lookup(podstate.NodeTermTokens...)
		r := rawjson.NewReader(raw)
		r.Array(func(i int) {
			if !b.Reads() {
				r.Stop()
				return
			}
			h.Terms.Terms = append(h.Terms.Terms, podstate.NodeTerm{Value: r.Value(), Index: i})
		})
	}
	terms := h.Terms.Terms
	wanted := make([]podstate.NodeTerm, len(c.NodeTerms))
	for i, value := range c.NodeTerms {
		wanted[i] = podstate.NodeTerm{Value: value, Index: -1, Origin: c}
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
		satisfied[i] = term.Empty() || slices.ContainsFunc(wanted, func(w podstate.NodeTerm) bool { return len(term.Missing(w.Parse(b), b)) == 0 })
		if !satisfied[i] {
			n += len(wanted) - 1
		}
	}
	if n > validate.MaxNodeTerms {
		ad.conflict(conflict{object: c, alone: true}, "%s: required node affinity would have more than %d terms", c, validate.MaxNodeTerms)
		return
	}
	if b.Spent() {
		return
	}
	if len(terms) == 0 {
		for _, w := range wanted {
			b.Grow(len(w.Value))
		}
		h.Terms.Terms = wanted
		return
	}
	narrowed, more := make([]podstate.NodeTerm, 0, n), []podstate.NodeTerm(nil)
	for i := range terms {
		term := terms[i]
		if satisfied[i] {
			narrowed = append(narrowed, term)
			continue
		}
		for j := range wanted {
			if b.Spent() {
				return
			}
			lacks := term.Parse(b).Missing(wanted[j].Parse(b), b)
			both := podstate.NodeTerm{Value: podstate.Extend(term.Value, lacks), Index: -1, Origin: c}
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
}
