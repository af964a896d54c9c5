// SPDX-License-Identifier: Apache-2.0

// Package compare says whether two plans conflict on pods that both select, and describes it for
// their authors.
//
// In go two plans; out come the places that both set differently. It looks at no pod: what pods
// they are is asked of the selectors alone.
package compare

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// OfPlans returns the places of a pod where two objects conflict if both select it, such as
// "env HTTP_PROXY", sorted. There are none if no pod can have both, if they are alternatives
// (spec.exclusiveGroup), or if one can never work. Priorities, policies and modes do not matter:
// they only decide what a conflict leads to.
func OfPlans(a, b *plan.Plan) []string {
	if a.Problem() != nil || b.Problem() != nil || a.Alternative(b) || Exclusive(a, b) {
		return nil
	}
	places, within := sets.New[string](), meta.NewBudget(context.Background())
	for _, place := range Disagreements(&within, a.Unpack(), b.Unpack()) {
		places.Insert(place)
	}
	return slices.Sorted(maps.Keys(places))
}
