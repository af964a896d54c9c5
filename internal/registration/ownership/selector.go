// SPDX-License-Identifier: Apache-2.0

// Package ownership says what of an object that several clients apply is ours, and whether it is as we want it: fields by
// metadata.managedFields, and label selectors by their terms.
package ownership

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/sallyport-io/sallyport/internal/kube/selectors"
)

// requirement is one term of a label selector; the values are sorted.
type requirement struct {
	key      string
	operator metav1.LabelSelectorOperator
	values   []string
}

func (r requirement) equal(other requirement) bool {
	return r.key == other.key && r.operator == other.operator && slices.Equal(r.values, other.values)
}

// requirements returns the terms of a selector.
func requirements(s *metav1.LabelSelector) []requirement {
	var out []requirement
	for _, term := range selectors.Terms(s) {
		out = append(out, normal(term))
	}
	return out
}

func normal(e metav1.LabelSelectorRequirement) requirement {
	values := slices.Clone(e.Values)
	slices.Sort(values)
	return requirement{e.Key, e.Operator, slices.Compact(values)}
}

// Implies reports whether ours selects everything that observed selects, as far as comparing
// terms shows: observed contains each of our terms, or a stricter one.
func Implies(observed, ours *metav1.LabelSelector) bool {
	terms := requirements(observed)
	for _, r := range requirements(ours) {
		if !r.impliedBy(terms) {
			return false
		}
	}
	return true
}

func (r requirement) impliedBy(terms []requirement) bool {
	anyTerm := func(holds func(requirement) bool) bool {
		return slices.ContainsFunc(terms, func(t requirement) bool { return t.key == r.key && holds(t) })
	}
	switch r.operator {
	case metav1.LabelSelectorOpExists:
		return anyTerm(func(t requirement) bool {
			return t.operator == metav1.LabelSelectorOpExists || t.operator == metav1.LabelSelectorOpIn
		})
	case metav1.LabelSelectorOpDoesNotExist:
		return anyTerm(func(t requirement) bool { return t.operator == metav1.LabelSelectorOpDoesNotExist })
	case metav1.LabelSelectorOpIn:
		return anyTerm(func(t requirement) bool {
			return t.operator == metav1.LabelSelectorOpIn &&
				!slices.ContainsFunc(t.values, func(v string) bool { return !slices.Contains(r.values, v) })
		})
	case metav1.LabelSelectorOpNotIn: // also matches an object without the label
		return !slices.ContainsFunc(r.values, func(v string) bool {
			return !anyTerm(func(t requirement) bool {
				switch t.operator {
				case metav1.LabelSelectorOpDoesNotExist:
					return true
				case metav1.LabelSelectorOpNotIn:
					return slices.Contains(t.values, v)
				case metav1.LabelSelectorOpIn:
					return !slices.Contains(t.values, v)
				default:
					return false
				}
			})
		})
	default:
		return false
	}
}

// adopted returns the selector to apply if another manager owns the observed one too.
// Server-side apply treats a label selector as atomic: applying ours would drop the other
// managers' terms, and they would restore them, forever. If ours still holds, adopted keeps the
// observed selector without our obsolete terms. Otherwise it returns ours.
func adopted(observed, before, ours *metav1.LabelSelector) *metav1.LabelSelector {
	if observed == nil {
		return ours
	}
	terms, stale := requirements(ours), []requirement(nil)
	for _, r := range requirements(before) {
		if !slices.ContainsFunc(terms, r.equal) {
			stale = append(stale, r)
		}
	}
	rest := observed.DeepCopy()
	for key, value := range observed.MatchLabels {
		if slices.ContainsFunc(stale, requirement{key, metav1.LabelSelectorOpIn, []string{value}}.equal) {
			delete(rest.MatchLabels, key)
		}
	}
	rest.MatchExpressions = slices.DeleteFunc(rest.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool {
		return slices.ContainsFunc(stale, normal(e).equal)
	})
	if Implies(rest, ours) {
		return rest
	}
	return ours
}

// Selector preserves the difference between unset (left to others) and empty (owned, selects all).
func Selector(in *metav1.LabelSelector) *metav1ac.LabelSelectorApplyConfiguration {
	if in == nil {
		return nil
	}
	out := metav1ac.LabelSelector().WithMatchLabels(in.MatchLabels)
	for _, e := range in.MatchExpressions {
		out.WithMatchExpressions(metav1ac.LabelSelectorRequirement().
			WithKey(e.Key).WithOperator(e.Operator).WithValues(e.Values...))
	}
	return out
}

// Plain converts the selector of an apply configuration. It returns nil for nil.
func Plain(s *metav1ac.LabelSelectorApplyConfiguration) *metav1.LabelSelector {
	if s == nil {
		return nil
	}
	out := &metav1.LabelSelector{MatchLabels: s.MatchLabels}
	for _, e := range s.MatchExpressions {
		var r metav1.LabelSelectorRequirement
		if e.Key != nil {
			r.Key = *e.Key
		}
		if e.Operator != nil {
			r.Operator = *e.Operator
		}
		r.Values = e.Values
		out.MatchExpressions = append(out.MatchExpressions, r)
	}
	return out
}

// A SelectorField is a selector in an apply configuration.
type SelectorField struct {
	Webhook, Field string // as in metadata.managedFields: the webhook's name and the field's name
	Value          **metav1ac.LabelSelectorApplyConfiguration
}

// Adopt replaces desired selectors that another manager also owns in observed by the result of
// adopted. The func restores the previous values.
func Adopt(manager string, desired []SelectorField, before map[string]*metav1.LabelSelector, observed metav1.Object, observedSelectors map[string]*metav1.LabelSelector) (restore func()) {
	ours := make([]*metav1ac.LabelSelectorApplyConfiguration, len(desired))
	for i, s := range desired {
		ours[i] = *s.Value
		if *s.Value == nil || !Others(observed, manager, "f:webhooks", `k:{"name":"`+s.Webhook+`"}`, "f:"+s.Field) {
			continue
		}
		key := s.Key()
		*s.Value = Selector(adopted(observedSelectors[key], before[key], Plain(*s.Value)))
	}
	return func() {
		for i, s := range desired {
			*s.Value = ours[i]
		}
	}
}

// Key names the field in maps.
func (s SelectorField) Key() string { return s.Webhook + "/" + s.Field }
