// SPDX-License-Identifier: Apache-2.0

package match

import (
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// An Exempted is an object that would apply to a pod if the pod were not exempt.
type Exempted struct {
	*plan.Plan
	// By is the exemption that ends last.
	By *exempt.Exemption
}

// Exempt separates the objects from which the pod is exempt.
func (a *Arrival) Exempt(source Source, selected []*plan.Plan) (rest []*plan.Plan, exempted []Exempted) {
	list, now := source.Exemptions(a.Namespace)
	if len(list) == 0 {
		return selected, nil
	}
	workload := meta.OfPod(a.Metadata, a.Bounds).Unit
	for _, c := range selected {
		a.Bounds.Did(meta.WorkOfVisit * len(list))
		if by := exempt.From(c.Decision(), list, now, workload); by != nil {
			exempted = append(exempted, Exempted{c, by})
		} else {
			rest = append(rest, c)
		}
	}
	return rest, exempted
}
