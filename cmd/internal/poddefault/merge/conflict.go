// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"slices"
	"strings"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/compare"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podstate"
)

// Messages name the PodDefault, the field, the container, both sides and the remedy.
// They never contain a value: env variables and annotations may be secret, and messages
// end up in events and logs.

// A conflict is a disagreement that an object's policy does not resolve.
type conflict struct {
	object   *plan.Plan
	opponent *plan.Plan // nil: the pod
	// alone is set if there is no other value to keep, for example where a label is
	// missing: Keep then skips the object.
	alone bool
	// way is how a conflict is resolved that no policy resolves; empty for others.
	way  string
	text string
}

// conflicts are those found so far.
type conflicts struct {
	pod           *podstate.Pod
	Conflicts     []conflict
	atOdds        map[[2]*plan.Plan]bool // pairs with a conflict, once there are many
	moreConflicts int
	dropped       *conflict // the first conflict because of which an object is to be skipped
}

// skippable reports whether the object's policy skips it.
func (c *conflict) skippable() bool {
	return c.way == "" && (c.object.Policy == kubeflowv1alpha1.ConflictSkip || c.alone && c.object.Policy == kubeflowv1alpha1.ConflictKeepPod)
}

// Denies reports whether a conflict denies the pod.
func (cs *conflicts) Denies() bool {
	return slices.ContainsFunc(cs.Conflicts, func(c conflict) bool { return !c.skippable() })
}

// conflict records a conflict with its text. Beyond the report limit, it keeps one
// conflict per pair of objects, because those decide what happens to the objects.
func (cs *conflicts) conflict(c conflict, format string, args ...any) {
	if len(cs.Conflicts) >= meta.MaxTold {
		if cs.atOdds == nil {
			cs.atOdds = map[[2]*plan.Plan]bool{}
			for _, known := range cs.Conflicts {
				cs.atOdds[[2]*plan.Plan{known.object, known.opponent}] = true
			}
		}
		two := [2]*plan.Plan{c.object, c.opponent}
		if cs.atOdds[two] {
			cs.moreConflicts++
			return
		}
		cs.atOdds[two] = true
	}
	cs.pod.Bounds.Did(workOfRival)
	c.text = fmt.Sprintf(format, args...)
	cs.Conflicts = append(cs.Conflicts, c)
	if cs.dropped == nil && c.skippable() {
		cs.dropped = &c
	}
}

// remedy says who can resolve the conflicts, and how. The pod's author can exclude the
// pod if all objects allow it.
func (cs *conflicts) remedy() string {
	var ways []string
	var change, pair, self bool
	exclude := true
	for _, c := range cs.Conflicts {
		switch {
		case c.way != "":
			if !slices.Contains(ways, c.way) {
				ways = append(ways, c.way)
			}
		case c.opponent == nil:
			change = true
		case c.opponent.String() == c.object.String():
			self = true
		default:
			pair = true
		}
		exclude = exclude && c.object.AllowExclude()
	}
	if change {
		ways = append(ways, "change the pod or a PodDefault")
	}
	if pair {
		ways = append(ways, "change one selector, or set spec.conflictPolicy")
	}
	if self {
		ways = append(ways, "take one of the two out of the object, or set its spec.conflictPolicy")
	}
	if exclude {
		ways = append(ways, "exclude the pod with the annotation "+meta.ExcludeAnnotation+`: "true"`)
	}
	text := strings.Join(ways, ", or ")
	return strings.ToUpper(text[:1]) + text[1:]
}

// impossible records that two elements are impossible together. A nil object stands for
// the pod. Keeping what the pod has means skipping the object.
func (cs *conflicts) impossible(a, b *plan.Plan, what string) {
	if a == nil || b != nil && plan.InOrder(a, b) < 0 {
		a, b = b, a // the later or only one
	}
	switch {
	case a == nil:
		return
	case b != nil && a.String() != b.String() && a.Alternative(b) && !(&conflict{object: a, alone: true}).skippable(): // already denied for that
		return
	case b == nil || a.String() == b.String():
		cs.conflict(conflict{object: a, alone: true}, "%s: %s, which the API server refuses", a, what)
	default:
		cs.conflict(conflict{object: a, opponent: b, alone: true}, "%s: %s, which the API server refuses", compare.Both(a, b), what)
	}
}

// deniedBy returns the audit annotations of a denial: the conflicting objects.
func (cs *conflicts) deniedBy() map[string]string {
	var objects []*plan.Plan
	for _, conflict := range cs.Conflicts {
		if !plan.IsIn(objects, conflict.object) {
			objects = append(objects, conflict.object)
		}
	}
	if len(objects) == 0 {
		return nil
	}
	return map[string]string{"denied": plan.Generations(objects)}
}
