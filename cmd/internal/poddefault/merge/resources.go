// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podstate"
)

// addResources adds missing requests and limits. Values from a LimitRange count as
// missing, because they are only defaults. The first PodDefault wins.
func (ad *adder) addResources(t *podstate.Container, c *plan.Plan) {
	for _, wanted := range c.Resources {
		t.Bounds.Did(meta.WorkOfVisit)
		if ad.exceeded(c, func() string { return placeOf(wanted.List+" of "+wanted.Name, t) }) {
			return
		}
		tokens := []string{"resources", wanted.List, wanted.Name}
		if t.Value(tokens) != nil {
			continue
		}
		have, ok := t.Quantity(wanted.List, wanted.Name)
		if ok && !ad.Pod.LimitRanged(t, wanted.List, wanted.Name) {
			continue
		}
		if ok && have.Cmp(wanted.Parsed) == 0 {
			t.Set(&podstate.HeldValue{Tokens: tokens, Value: wanted.Value, Origin: c, There: true})
			continue
		}
		opposite := "requests"
		if wanted.List == opposite {
			opposite = "limits"
		}
		if other, ok := t.Quantity(opposite, wanted.Name); ok && !ad.replacedBy(t, c, opposite, wanted.Name) {
			compared := wanted.Parsed.Cmp(other)
			if wanted.List == "requests" && compared > 0 || wanted.List == "limits" && compared < 0 ||
				!sets(c, opposite, wanted.Name) && ad.loweredSince(t, c, opposite, wanted.Name, other) {
				ad.warn("%s: %s of %s of container %s left out: the request would be larger than the limit", c, wanted.List, wanted.Name, t.Name)
				continue
			}
		}
		t.Set(&podstate.HeldValue{Tokens: tokens, Value: wanted.Value, Origin: c})
	}
}

// loweredSince reports whether an earlier call has tried c, and a later object wants the quantity that
// the container has and a LimitRange had filled in: then c found another one, which left its own out.
func (ad *adder) loweredSince(t *podstate.Container, c *plan.Plan, list, name string, have resource.Quantity) bool {
	if !ad.triedBefore(c) || !ad.Pod.LimitRanged(t, list, name) {
		return false
	}
	return slices.ContainsFunc(ad.Applied[ad.index+1:], func(later *plan.Plan) bool {
		ad.Pod.Bounds.Did(len(later.Resources) / 4)
		return ad.picks(later, t, ad.mesh) && slices.ContainsFunc(later.Resources, func(q plan.Quantity) bool {
			return q.List == list && q.Name == name && q.Parsed.Cmp(have) == 0
		})
	})
}

// warnOfSeveral warns if several containers of the pod now get a resource that cannot
// be shared. Init containers release theirs, unless they keep running.
func (ad *adder) warnOfSeveral(c *plan.Plan) {
	for _, q := range c.Resources {
		if q.List != "limits" || !meta.Extended(corev1.ResourceName(q.Name)) {
			continue
		}
		var takers []string
		ad.pickedFrom(c, func(t *podstate.Container) {
			if v := t.Value([]string{"resources", q.List, q.Name}); v != nil && v.Origin == c && (!t.Init || t.Native()) {
				takers = append(takers, t.Name)
			}
		})
		if len(takers) > 1 {
			ad.warn("%s: each of the containers %s gets its own %s; with containerSelector.first the first one alone does", c, strings.Join(takers, ", "), q.Name)
		}
	}
}

// replacedBy reports whether c will override the quantity.
func (ad *adder) replacedBy(t *podstate.Container, c *plan.Plan, list, name string) bool {
	ad.Pod.Bounds.Did(len(c.Resources) / 4)
	return sets(c, list, name) && t.Value([]string{"resources", list, name}) == nil && ad.Pod.LimitRanged(t, list, name)
}

// sets reports whether the object has the quantity.
func sets(c *plan.Plan, list, name string) bool {
	return slices.ContainsFunc(c.Resources, func(q plan.Quantity) bool { return q.List == list && q.Name == name })
}
