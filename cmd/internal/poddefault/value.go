// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"bytes"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// A valueRule defines what an existing value of a field means.
type valueRule struct {
	// unwritten is the policy for objects without one. Fields older than policies
	// override or give way, as they always did.
	unwritten kubeflowv1alpha1.ConflictPolicy
	// unset reports whether the pod's value counts as unset, in addition to null: API
	// defaults, which look the same as explicit values. Nil means no value does.
	unset func(have jsontext.Value) bool
	// removes lists fields that the API server derived from the old value and would
	// refuse next to the new one.
	removes [][]string
	// command is set for fields that follow the exclusion of command and args.
	command bool
	// running is set for fields that only long-running containers may have: no init
	// containers except native sidecars.
	running bool
}

var (
	// plainRule is for fields that conflict with any other value.
	plainRule = &valueRule{}

	// serviceAccountRule: the ServiceAccount plugin has set a missing name to
	// "default". The deprecated serviceAccount is left to the API server.
	serviceAccountRule = &valueRule{unwritten: kubeflowv1alpha1.ConflictOverride, unset: anyOf(`""`, `"default"`)}
	automountRule      = &valueRule{unwritten: kubeflowv1alpha1.ConflictOverride}
	commandRule        = &valueRule{unwritten: kubeflowv1alpha1.ConflictKeepPod, unset: empty, command: true}

	// priorityClassRule: the Priority plugin has already computed both numbers. It
	// refuses a pod whose numbers do not match its class when it runs again.
	priorityClassRule = &valueRule{
		unset:   anyOf(`""`),
		removes: [][]string{{"priority"}, {"preemptionPolicy"}},
	}
	// runtimeClassRule: the RuntimeClass plugin has set the overhead of the pod's
	// class, and refuses a different one when it runs again.
	runtimeClassRule = &valueRule{removes: [][]string{{"overhead"}}}
	// Fields that the API server has defaulted.
	graceRule         = &valueRule{unset: anyOf("30")}
	schedulerRule     = &valueRule{unset: anyOf(`""`, `"default-scheduler"`)}
	serviceLinksRule  = &valueRule{unset: anyOf("true")}
	dnsPolicyRule     = &valueRule{unset: anyOf(`""`, `"ClusterFirst"`)}
	messagePolicyRule = &valueRule{unset: anyOf(`""`, `"File"`)}

	lifecycleRule = &valueRule{running: true}
)

// anyOf returns a [valueRule.unset] for these values, as the API server encodes them.
func anyOf(values ...string) func(jsontext.Value) bool {
	return func(have jsontext.Value) bool { return slices.Contains(values, string(have)) }
}

// policy returns c's policy for a conflict over the field.
func (r *valueRule) policy(c *Compiled) kubeflowv1alpha1.ConflictPolicy {
	if c.policy == "" {
		return r.unwritten
	}
	return c.policy
}

// fieldsOf creates a value for each member of an encoded object, ordered by name,
// except those to leave out.
func fieldsOf(values []fieldValue, object jsontext.Value, rule *valueRule, leave []string, tokens ...string) []fieldValue {
	members := map[string]jsontext.Value{}
	r := rawjson.NewReader(object)
	r.Object(func(name []byte) { members[string(name)] = r.Value() })
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(leave, name) {
			values = append(values, fieldValue{append(slices.Clone(tokens), name), members[name], rule})
		}
	}
	return values
}

// setValues merges c's values into the pod's spec or a container.
func (m *merge) setValues(h *holder, t *container, c *Compiled, values []fieldValue) {
	for i := range values {
		f := &values[i]
		if t == nil || m.takes(t, c, f.rule) {
			m.setValue(h, t, c, f)
		}
		if m.exceeded(c, func() string { return placeOf(f.name(), t) }) {
			return
		}
	}
}

// takes reports whether a container may have a field and c applies it to that
// container.
func (m *merge) takes(t *container, c *Compiled, rule *valueRule) bool {
	excluded := m.mesh
	if rule.command {
		excluded = m.leftAlone.Commands
	}
	return m.picks(c, t, excluded) && (!rule.running || !t.init || t.native())
}

func (m *merge) setValue(h *holder, t *container, c *Compiled, f *fieldValue) {
	b := h.bounds
	satisfied := func(have jsontext.Value) bool { return f.rule.satisfies(b, f.value, have) }
	at := placeOf(f.name(), t)
	since := func() bool { return m.replacedValueSince(h, t, c, f) }
	if earlier := h.value(f.tokens); earlier != nil {
		switch {
		case satisfied(earlier.value):
		case f.rule.command && c.policy == "":
			m.warn("%s did not set %s: %s did before", c, at, earlier.origin)
		case earlier.there && m.excused(c, f.rule.policy(c), at): // the other object wants what the pod has
		case c.policy == "" && f.rule.unwritten == kubeflowv1alpha1.ConflictOverride:
			m.warn("%s set %s over that of %s", c, at, earlier.origin)
			h.change(earlier, f, c, satisfied)
		case m.settle(c, earlier.origin, f.rule.policy(c), at, another(earlier.origin), since):
			h.change(earlier, f, c, satisfied)
		}
		return
	}
	set := &heldValue{tokens: f.tokens, value: f.value, origin: c}
	have, ok := h.lookup(f.tokens...)
	switch {
	case !ok, have.Kind() == 'n':
		set.removes = f.rule.removes
	case satisfied(have):
		set.there = true
	case f.rule.unset != nil && f.rule.unset(have):
		set.removes = f.rule.removes
	case f.rule.command && c.policy == "":
		return // the pod's own value needs no conflict
	case f.rule.unwritten == kubeflowv1alpha1.ConflictOverride && c.policy == "":
		set.removes = f.rule.removes
	case t != nil && m.isInjected(t.name):
		m.stuck(c, t.origin, at, another(t.origin), since)
		return
	case m.settle(c, nil, f.rule.policy(c), at, another(nil), since):
		set.removes = f.rule.removes
	default:
		return
	}
	h.set(set)
}

// replacedValueSince is [merge.replacedSince] for a field.
func (m *merge) replacedValueSince(h *holder, t *container, c *Compiled, f *fieldValue) bool {
	values, excluded := podValues, []string(nil)
	if t != nil {
		values, excluded = containerValues, m.mesh
	}
	if f.rule.command {
		excluded = m.leftAlone.Commands
	}
	have, ok := h.lookup(f.tokens...)
	return ok && m.replacedSince(c, place{values, jsonpatch.Pointer(f.tokens...)}, t, excluded, func(later jsontext.Value) bool {
		return f.rule.satisfies(h.bounds, later, have)
	})
}

// satisfies reports whether a value of the field is the wanted one.
func (r *valueRule) satisfies(b *bounds, want, have jsontext.Value) bool {
	if bytes.Equal(want, have) || !b.compares(want, have) {
		return true
	}
	// The API server may have added defaults to a hook.
	return len(subset(want, have)) == 0 && (r == lifecycleRule || len(subset(have, want)) == 0)
}

// change replaces a value that another object has set.
func (h *holder) change(v *heldValue, f *fieldValue, c *Compiled, satisfied func(jsontext.Value) bool) {
	h.bounds.replaces(len(v.value), len(f.value))
	have, ok := h.lookup(f.tokens...)
	v.value, v.origin, v.removes = f.value, c, f.rule.removes
	if v.there = ok && satisfied(have); v.there {
		v.removes = nil
	}
}
