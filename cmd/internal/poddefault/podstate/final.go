// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// All returns the final elements of the list.
func (l *List) All() []plan.Item {
	out := make([]plan.Item, 0, l.Length()+len(l.Added))
	l.bounds.Did(meta.WorkOfVisit * cap(out))
	for i := range l.Length() {
		out = append(out, *l.at(i))
	}
	return append(out, l.Added...)
}

// All returns the final elements of a list of the holder.
func (h *Holder) All(kind *plan.ListKind, tokens ...string) []plan.Item {
	for _, known := range h.Lists {
		if known.Kind == kind && slices.Equal(known.Tokens, tokens) {
			return known.All()
		}
	}
	raw, _ := h.Lookup(tokens...)
	return (&List{Kind: kind, Raw: raw, bounds: h.Bounds}).All()
}

// Final returns a field's final value and the object that sets it, nil if it is the
// holder's own.
func (h *Holder) Final(tokens ...string) (value jsontext.Value, by *plan.Plan) {
	if set := h.Value(tokens); set != nil && !set.There {
		return set.Value, set.Origin
	}
	value, _ = h.Lookup(tokens...)
	return value, nil
}

// Since returns the object since whose turn the container has what an object adds, nil for the
// container's own content: the later of that object and the one that brings the container.
func (c *Container) Since(by *plan.Plan) *plan.Plan {
	if by == nil || c.Origin != nil && plan.InOrder(by, c.Origin) < 0 {
		return c.Origin
	}
	return by
}

// SinceQuantity is [Container.Since] for a request or limit.
func (c *Container) SinceQuantity(list, name string) *plan.Plan {
	_, by := c.Final("resources", list, name)
	return c.Since(by)
}
