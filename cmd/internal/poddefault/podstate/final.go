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

// Of returns the object that adds an element of the container.
func (c *Container) Of(w plan.Item) *plan.Plan {
	if w.Origin == nil {
		return c.Origin
	}
	return w.Origin
}

// Setter returns the object whose request or limit the container has, nil if it is the pod's.
func (c *Container) Setter(list, name string) *plan.Plan {
	if set := c.Value([]string{"resources", list, name}); set != nil && !set.There {
		return set.Origin
	}
	return c.Origin
}
