// SPDX-License-Identifier: Apache-2.0

package match

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// Why says what became of an object that selects a pod, or would.
type Why string

// What may become of an object. Those up to OtherRevision are decided by a [Match], the others by merging.
const (
	Excluded      Why = "Excluded"      // the pod excludes itself
	Exempt        Why = "Exempt"        // see Reason.By
	AddedLabels   Why = "AddedLabels"   // labels that objects add would select it, and it is optional
	OtherRevision Why = "OtherRevision" // the pod gets another revision, which does not select it
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
	Text   string            // of Skipped, Unusable, and Refused if the object has a conflict itself; without values
	By     *exempt.Exemption // of Exempt
	Via    []Added           // if added labels alone select it
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

// Mismatch returns the requirements of an object's selectors that the labels of a namespace, or otherwise those
// of a pod, do not meet; empty if they meet all.
func Mismatch(c *plan.Plan, namespace, pod labels.Set) string {
	if selector := c.NamespaceSelector(); selector != nil {
		if why := mismatch(selector, namespace, "the namespace"); why != "" {
			return "namespaceSelector: " + why
		}
	}
	if c.Selector() == nil {
		return "its selector does not parse"
	}
	return mismatch(c.Selector(), pod, "the pod")
}

// mismatch returns the requirement of a selector that labels do not meet, or "".
func mismatch(selector labels.Selector, set labels.Set, whose string) string {
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
		if value, ok := set[r.Key()]; ok {
			has = fmt.Sprintf("%s has %q", whose, value)
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
