// SPDX-License-Identifier: Apache-2.0

package backstop

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// maxEntryBytes limits the JSON size of one object in an index, so that a large object
// does not crowd out others.
const maxEntryBytes = 16 << 10

// Entry is the part of an injecting object that an index stores. It is immutable.
type Entry struct {
	decision     string // the object's name in [meta.DecisionsAnnotation]
	version      string // see [poddefault.Compiled.Version]
	requirements []metav1.LabelSelectorRequirement
	namespaces   labels.Selector // for a ClusterPodDefault; nil selects all
	size         int             // upper bound of the JSON size
}

// NewEntry returns nil for an object that changes no pod: one that can never work or is
// in mode Audit. Pods may safely pass without it.
func NewEntry(c *plan.Plan) *Entry {
	if !c.Injects() {
		return nil
	}
	e := &Entry{decision: c.Decision(), version: c.Version(), requirements: requirements(c.Selector()), namespaces: c.NamespaceSelector()}
	text := len(e.text(-1))
	e.size = text + len(`"",`)
	for _, r := range e.requirements {
		n := 0
		for _, term := range terms(r) {
			n += len(";:,") + len(term) + text
		}
		e.size = max(e.size, n)
	}
	return e
}

// ofCluster is 1 for a ClusterPodDefault, else 0.
func (e *Entry) ofCluster() int {
	if strings.HasPrefix(e.decision, meta.ClusterDecision) {
		return 1
	}
	return 0
}

// requirements returns the requirements of a selector ordered by key, with sorted
// values.
func requirements(selector labels.Selector) []metav1.LabelSelectorRequirement {
	var out []metav1.LabelSelectorRequirement
	all, _ := selector.Requirements()
	for _, r := range all {
		out = append(out, metav1.LabelSelectorRequirement{Key: r.Key(), Operator: selectorOperators[r.Operator()], Values: r.Values().List()})
	}
	slices.SortStableFunc(out, func(a, b metav1.LabelSelectorRequirement) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(string(a.Operator), string(b.Operator)), slices.Compare(a.Values, b.Values))
	})
	return out
}

var selectorOperators = map[selection.Operator]metav1.LabelSelectorOperator{
	selection.Equals: metav1.LabelSelectorOpIn, selection.DoubleEquals: metav1.LabelSelectorOpIn, selection.In: metav1.LabelSelectorOpIn,
	selection.NotIn: metav1.LabelSelectorOpNotIn, selection.Exists: metav1.LabelSelectorOpExists, selection.DoesNotExist: metav1.LabelSelectorOpDoesNotExist,
}

// selects reports whether an object applies in a namespace with these labels.
func (e *Entry) selects(namespace labels.Set) bool {
	return e.namespaces == nil || e.namespaces.Matches(namespace)
}
