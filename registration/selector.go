// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/sallyport-io/sallyport/internal/selectors"
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

// requirements are the terms of a selector.
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

// implies tells whether everything that observed selects, ours selects too, as far as
// that shows term by term: each of our terms stands there, or a stricter one.
func implies(observed, ours *metav1.LabelSelector) bool {
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
	case metav1.LabelSelectorOpNotIn: // which an object without the label matches too
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

// adopted is the selector to apply where another manager owns the observed one too. A
// label selector is atomic for server-side apply: to apply ours is to throw out the
// terms of others, who then put them back, for ever. So if ours still holds, the
// observed one is kept, without the terms that were ours before and are not any more;
// if it does not, ours it is.
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
	if implies(rest, ours) {
		return rest
	}
	return ours
}

// plain is the selector of an apply configuration; nil for nil.
func plain(s *metav1ac.LabelSelectorApplyConfiguration) *metav1.LabelSelector {
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

// selectorField is a selector in an apply configuration.
type selectorField struct {
	webhook, field string // of metadata.managedFields: the name, and the name of the field
	value          **metav1ac.LabelSelectorApplyConfiguration
}

// adopt puts into desired what is to be applied where another manager owns a
// selector of observed too. The func puts back what was there.
func adopt(manager string, desired []selectorField, before map[string]*metav1.LabelSelector, observed metav1.Object, observedSelectors map[string]*metav1.LabelSelector) (restore func()) {
	ours := make([]*metav1ac.LabelSelectorApplyConfiguration, len(desired))
	for i, s := range desired {
		ours[i] = *s.value
		if *s.value == nil || !others(observed, manager, "f:webhooks", `k:{"name":"`+s.webhook+`"}`, "f:"+s.field) {
			continue
		}
		key := s.key()
		*s.value = selector(adopted(observedSelectors[key], before[key], plain(*s.value)))
	}
	return func() {
		for i, s := range desired {
			*s.value = ours[i]
		}
	}
}

func (s selectorField) key() string { return s.webhook + "/" + s.field }
