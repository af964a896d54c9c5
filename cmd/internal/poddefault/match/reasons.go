// SPDX-License-Identifier: Apache-2.0

package match

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
)

// Why says what became of an object that selects a pod, or would.
type Why string

// What may become of an object. Those up to NotSelected are decided by a [Match], the others by merging.
const (
	NotCalled     Why = "NotCalled"     // no webhook decided about the pod
	Excluded      Why = "Excluded"      // the pod excludes itself
	Exempt        Why = "Exempt"        // see Reason.By
	AddedLabels   Why = "AddedLabels"   // labels that objects add would select it, and it is optional; see Reason.Text
	OtherRevision Why = "OtherRevision" // the pod gets another revision, which does not select it
	NotSelected   Why = "NotSelected"   // see Reason.Text, which is empty if no more was decided about the pod
	Applied       Why = "Applied"
	Audited       Why = "Audited"
	Skipped       Why = "Skipped"  // see Reason.Text
	Unusable      Why = "Unusable" // see Reason.Text
	PassedOver    Why = "PassedOver"
	Refused       Why = "Refused" // the pod is denied
)

// A Reason is what became of one object, as the decision itself knew it.
type Reason struct {
	Object *plan.Plan
	Why    Why
	// Text is without values, except those of labels in the texts of NotSelected and AddedLabels. Refused has one if the object
	// has a conflict itself.
	Text string
	By   *exempt.Exemption // of Exempt
	Via  []Added           // if added labels alone select it
	// Unknown are the requirements on labels of the namespace on which it depends, and which the source does not know.
	Unknown []string
}

// Added is a label that an object adds.
type Added struct {
	Key string
	By  *plan.Plan
}

// Left returns the objects that would select the pod and do not apply to it, with the reasons.
func (m *Match) Left() (reasons []Reason) {
	known := map[string]bool{}
	add := func(r Reason) {
		if !known[r.Object.String()] {
			known[r.Object.String()] = true
			reasons = append(reasons, r)
		}
	}
	for _, e := range m.exempted {
		add(Reason{Object: e.Plan, Why: Exempt, By: e.By})
	}
	for _, c := range m.excluded {
		add(Reason{Object: c, Why: Excluded})
	}
	for _, c := range m.Outside {
		why := OtherRevision
		if m.bySent != nil && !plan.IsIn(m.bySent.Outside, c) && c.AllowExclude() {
			why = AddedLabels
		}
		add(Reason{Object: c, Why: why})
	}
	return reasons
}

// BySent reports whether the labels that the pod was sent with select the object.
func (m *Match) BySent(c *plan.Plan) bool { return m.bySent == nil || plan.IsIn(m.bySent.Objects, c) }

// A View is what selects objects for a pod: its labels, and those of its namespace.
type View struct {
	sent, stored podmeta.Labels // stored is with those that objects add
	namespace    labels.Set
	known        bool // the source knows the labels of the namespace
	excluded     bool // the pod excludes itself
}

// NewView returns the view of a pod of a namespace with the labels that it was sent with, and those that objects add.
func NewView(source Source, namespace string, sent podmeta.Labels, added []podmeta.Entry, excluded bool) *View {
	v := &View{sent: sent, stored: sent.With(added), excluded: excluded}
	v.namespace, v.known = source.NamespaceLabels(namespace)
	return v
}

// Complete returns a reason with all that depends on selectors.
func (v *View) Complete(r Reason) Reason {
	pod := v.sent
	if !r.Object.AllowExclude() {
		pod = v.stored
	}
	switch r.Why {
	case NotSelected:
		r.Text = v.mismatch(r.Object, pod)
	case AddedLabels:
		r.Text = v.mismatch(r.Object, pod) + ", and labels that PodDefaults add do not select it"
	}
	if !v.known && (!v.excluded || !r.Object.AllowExclude()) {
		r.Unknown = v.unknown(r.Object, pod)
	}
	return r
}

// unknown returns the requirements of an object on labels that the namespace may have; none if another is not met, or if the
// object changes no pod.
func (v *View) unknown(c *plan.Plan, pod labels.Labels) (unknown []string) {
	if c.NamespaceSelector() == nil || !c.Injects() || !c.Selector().Matches(pod) {
		return nil
	}
	requirements, _ := c.NamespaceSelector().Requirements()
	for _, r := range requirements {
		if !v.namespace.Has(r.Key()) {
			unknown = append(unknown, r.String())
		} else if !r.Matches(v.namespace) {
			return nil
		}
	}
	return unknown
}

// mismatch returns the requirements of an object's selectors that the labels of the namespace, or otherwise those
// of a pod, do not meet; empty if they meet all.
func (v *View) mismatch(c *plan.Plan, pod labels.Labels) string {
	if selector := c.NamespaceSelector(); selector != nil {
		if why := mismatch(selector, v.namespace, "the namespace"); why != "" {
			return "namespaceSelector: " + why
		}
	}
	if c.Selector() == nil {
		return "its selector does not parse"
	}
	return mismatch(c.Selector(), pod, "the pod")
}

// mismatch returns the requirement of a selector that labels do not meet, or "".
func mismatch(selector labels.Selector, set labels.Labels, whose string) string {
	requirements, selectable := selector.Requirements()
	if !selectable {
		return "its selector does not parse, or selects nothing"
	}
	var out []string
	for _, r := range requirements {
		if r.Matches(set) {
			continue
		}
		wants := ""
		values := strings.Join(r.Values().List(), ", ")
		switch r.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			if wants = fmt.Sprintf("wants %q", values); r.Values().Len() > 1 {
				wants = "wants one of " + shortened(values)
			}
		case selection.NotIn, selection.NotEquals:
			wants = "wants none of " + shortened(values)
		case selection.Exists:
			wants = "wants it to be there"
		case selection.DoesNotExist:
			wants = "wants it not to be there"
		default:
			wants = fmt.Sprintf("wants it %s %s", r.Operator(), values)
		}
		has := whose + " has no such label"
		if set.Has(r.Key()) {
			has = fmt.Sprintf("%s has %q", whose, set.Get(r.Key()))
		}
		out = append(out, fmt.Sprintf("label %s: it %s, %s", r.Key(), wants, has))
	}
	const most = 3
	if len(out) > most {
		out = append(out[:most:most], fmt.Sprintf("and %d labels more", len(out)-most))
	}
	return strings.Join(out, "; ")
}

// shortened shortens a long list of values.
func shortened(values string) string {
	const most = 100
	if len(values) <= most {
		return values
	}
	return strings.ToValidUTF8(values[:most], "") + "…"
}
