// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podstate"
)

// withdraws reports whether the element is a capability that the container's other list
// contains: one adds what the other drops. Policies can only resolve that conflict by
// keeping the existing element.
func withdraws(t *podstate.Container, f *plan.FieldList, wanted plan.Item) (other *plan.Item) {
	opposite := plan.FieldList{Tokens: slices.Clone(f.Tokens)}
	switch f.Kind {
	case plan.CapabilityAddKind:
		opposite.Kind, opposite.Tokens[2] = plan.CapabilityDropKind, "drop"
	case plan.CapabilityDropKind:
		opposite.Kind, opposite.Tokens[2] = plan.CapabilityAddKind, "add"
	default:
		return nil
	}
	other, _ = t.List(&opposite).Find(wanted.Key)
	return other
}

// opposes returns what the element that [withdraws] found does, for messages.
func opposes(f *plan.FieldList) string {
	if f.Kind == plan.CapabilityAddKind {
		return " drops it"
	}
	return " adds it"
}
