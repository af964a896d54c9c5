// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// Exclusive reports whether it is certain that no pod gets both objects: they are for
// different namespaces, no labels match both selectors, or a label added by one rules out
// the other. A label added by one may also select the other, if that does not allow
// exclusion. Labels added by other objects are ignored.
func Exclusive(a, b *plan.Plan) bool {
	return apart(a, b) || unsatisfiable(demandsOf(a.Selector(), a), demandsOf(b.Selector(), b))
}

// apart reports whether no namespace has the labels that two ClusterPodDefaults select.
func apart(a, b *plan.Plan) bool {
	x, y := a.NamespaceSelector(), b.NamespaceSelector()
	return x != nil && y != nil && unsatisfiable(demandsOf(x, nil), demandsOf(y, nil))
}

// unsatisfiable reports whether no labels match both. Labels are independent, so one
// impossible label is enough.
func unsatisfiable(a, b demands) bool {
	for key := range a {
		if !possible(a.of(key), b.of(key)) {
			return true
		}
	}
	for key := range b {
		if _, seen := a[key]; !seen && !possible(a.of(key), b.of(key)) {
			return true
		}
	}
	return false
}

// A demand is what a selector requires of one label, and what its object does to that
// label.
type demand struct {
	needed, refused bool             // must exist; must not exist
	among           sets.Set[string] // if it exists, one of these; nil means any value
	not             sets.Set[string] // if it exists, none of these
	adds            *string          // the value that the object adds
	byAdded         bool             // a label that another object adds counts
	insists         bool             // pods with another value do not get the object
}

// demands holds one object's demands by label key.
type demands map[string]*demand

func (d demands) of(key string) *demand {
	if known := d[key]; known != nil {
		return known
	}
	return &demand{}
}

// demandsOf returns the demands of a selector, and of the labels that its object adds, if it is
// for pods. A pod with another value is denied, or the object is skipped, unless its policy keeps
// the label.
func demandsOf(selector labels.Selector, c *plan.Plan) demands {
	all := demands{}
	byAdded := c != nil && !c.AllowExclude()
	at := func(key string) *demand {
		if all[key] == nil {
			all[key] = &demand{byAdded: byAdded}
		}
		return all[key]
	}
	requirements, _ := selector.Requirements()
	for i := range requirements {
		d, values := at(requirements[i].Key()), sets.New(requirements[i].ValuesUnsorted()...)
		switch requirements[i].Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			d.needed, d.among = true, common(d.among, values)
		case selection.NotIn, selection.NotEquals:
			d.not = d.not.Union(values)
		case selection.Exists:
			d.needed = true
		case selection.DoesNotExist:
			d.refused = true
		}
	}
	if c == nil {
		return all
	}
	for _, e := range c.Labels {
		d := at(e.Key)
		d.adds, d.insists = &e.Value, c.Policy != kubeflowv1alpha1.ConflictKeepPod && c.Policy != kubeflowv1alpha1.ConflictOverride
	}
	return all
}

// allows reports whether the label may have the value, if another object adds it.
func (d *demand) allows(value *string) bool {
	return value != nil && d.byAdded && !d.refused && !d.not.Has(*value) && (d.among == nil || d.among.Has(*value))
}

// possible reports whether a label can meet both demands.
func possible(a, b *demand) bool {
	// The pod does not have the label. One object then matches without it; the other
	// does too, or once the first has added it.
	if !a.needed && (!b.needed || b.allows(a.adds)) || !b.needed && a.allows(b.adds) {
		return true
	}
	if a.refused || b.refused {
		return false
	}
	values := common(a.among, b.among)
	for _, d := range []*demand{a, b} {
		if d.adds != nil && d.insists {
			values = common(values, sets.New(*d.adds))
		}
	}
	return values == nil || values.Difference(a.not).Difference(b.not).Len() > 0
}

// common returns the intersection of two sets. A nil set contains everything.
func common(a, b sets.Set[string]) sets.Set[string] {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return a.Intersection(b)
}

// SelectedInTurn warns if a pod that one of two objects selects by an added label would be
// denied, because the other is selected only by labels that the first adds: see [match.Match].
func SelectedInTurn(a, b *plan.Plan) (warnings []string) {
	if apart(a, b) {
		return nil
	}
	for _, pair := range [][2]*plan.Plan{{a, b}, {b, a}} {
		first, then := pair[0], pair[1]
		if first.AllowExclude() || then.AllowExclude() || !first.Injects() || !then.Injects() || !first.AddsWhatSelects(then.Selector()) {
			continue
		}
		warnings = append(warnings, fmt.Sprintf("%s adds a label that selects %s: a pod that itself is selected only by a label that another object adds is denied. "+
			"Select by labels that pods are created with", first, then))
	}
	return warnings
}
