// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podstate"
)

// A trial is a pod, the objects that are applied to it, and the limit that this has exceeded.
type trial struct {
	Pod     *podstate.Pod
	Applied []*plan.Plan // in the order of application
	index   int          // of the current object
	excess  *match.Excess
}

// exceeded records an exceeded limit once, for the current object, and reports whether
// to stop.
func (tr *trial) exceeded(c *plan.Plan, place func() string) bool {
	b := &tr.Pod.Bounds
	if !b.Spent() {
		return false
	}
	if tr.excess == nil && b.Over != "" {
		tr.excess = &match.Excess{Object: c, All: tr.Applied, Text: place() + ": " + b.Over,
			Remedy: "Let the PodDefault add less, or the pod have fewer containers" + orExclude(c)}
	}
	return true
}

// orExclude tells the pod's author how to exclude the pod, if the object allows it.
func orExclude(c *plan.Plan) string {
	if !c.AllowExclude() {
		return ""
	}
	return ", or exclude the pod with the annotation " + meta.ExcludeAnnotation + `: "true"`
}

// exceedsItself reports whether the pod alone exceeds a limit.
func (tr *trial) exceedsItself() bool {
	b := &tr.Pod.Bounds
	if b.Over != "" {
		tr.excess = &match.Excess{All: tr.Applied, Text: b.Over, Remedy: "Give it less, or no label that PodDefaults select by"}
	}
	return b.Spent()
}

// Beyond returns the exceeded limit as an [*excess], or the deadline error, or nil.
func (tr *trial) Beyond() error {
	if tr.excess == nil && tr.Pod.Bounds.Over != "" { // while emitting the patch
		tr.excess = &match.Excess{All: tr.Applied, Text: tr.Pod.Bounds.Over, Remedy: "Let PodDefaults add less"}
	}
	switch {
	case tr.Pod.Bounds.Fault != nil:
		return tr.Pod.Bounds.Fault
	case tr.excess != nil:
		return tr.excess
	}
	return nil
}
