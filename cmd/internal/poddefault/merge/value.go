// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"github.com/go-json-experiment/json/jsontext"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podstate"
)

// setValues merges c's values into the pod's spec or a container.
func (ad *adder) setValues(h *podstate.Holder, t *podstate.Container, c *plan.Plan, values []plan.FieldValue) {
	for i := range values {
		f := &values[i]
		if t == nil || ad.takes(t, c, f.Rule) {
			ad.setValue(h, t, c, f)
		}
		if ad.exceeded(c, func() string { return placeOf(f.Name(), t) }) {
			return
		}
	}
}

func (ad *adder) setValue(h *podstate.Holder, t *podstate.Container, c *plan.Plan, f *plan.FieldValue) {
	b := h.Bounds
	satisfied := func(have jsontext.Value) bool { return f.Rule.Satisfies(b, f.Value, have) }
	at := placeOf(f.Name(), t)
	since := func() bool { return ad.replacedValueSince(h, t, c, f) }
	if earlier := h.Value(f.Tokens); earlier != nil {
		switch {
		case satisfied(earlier.Value):
		case f.Rule.Command && c.Policy == "":
			ad.warn("%s did not set %s: %s did before", c, at, earlier.Origin)
		case earlier.There && ad.tolerates(c, f.Rule.Policy(c), at): // the other object wants what the pod has
		case earlier.There && f.Rule.Policy(c) == kubeflowv1alpha1.ConflictOverride && c.Policy != "" && since():
		case c.Policy == "" && f.Rule.Unwritten == kubeflowv1alpha1.ConflictOverride:
			ad.warn("%s set %s over that of %s", c, at, earlier.Origin)
			h.Change(earlier, f, c, satisfied)
		case ad.resolve(c, earlier.Origin, f.Rule.Policy(c), at, another(earlier.Origin), since):
			h.Change(earlier, f, c, satisfied)
		}
		return
	}
	set := &podstate.HeldValue{Tokens: f.Tokens, Value: f.Value, Origin: c}
	have, ok := h.Lookup(f.Tokens...)
	switch {
	case !ok, have.Kind() == 'n':
		set.Removes = f.Rule.Removes
	case satisfied(have):
		set.There = true
	case f.Rule.Unset != nil && f.Rule.Unset(have):
		set.Removes = f.Rule.Removes
	case f.Rule.Command && c.Policy == "":
		return // the pod's own value needs no conflict
	case f.Rule.Unwritten == kubeflowv1alpha1.ConflictOverride && c.Policy == "":
		set.Removes = f.Rule.Removes
	case t != nil && ad.isInjected(t.Name):
		ad.resolveFixed(c, t.Origin, at, another(t.Origin), since)
		return
	case ad.resolve(c, nil, f.Rule.Policy(c), at, another(nil), since):
		set.Removes = f.Rule.Removes
	default:
		return
	}
	h.Set(set)
}
