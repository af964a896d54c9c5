// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// exceeded records an exceeded limit once, for the current object, and reports whether
// to stop.
func (m *Merge) exceeded(c *plan.Plan, place func() string) bool {
	b := &m.Pod.Bounds
	if !b.Spent() {
		return false
	}
	if m.excess == nil && b.Over != "" {
		m.excess = &match.Excess{Object: c, All: m.Applied, Text: place() + ": " + b.Over,
			Remedy: "Let the PodDefault add less, or the pod have fewer containers" + m.orExclude(c)}
	}
	return true
}

// orExclude tells the pod's author how to exclude the pod, if the object allows it.
func (m *Merge) orExclude(c *plan.Plan) string {
	if !c.AllowExclude() {
		return ""
	}
	return ", or exclude the pod with the annotation " + meta.ExcludeAnnotation + `: "true"`
}

// Told returns the warnings, with a count of those left out.
func (m *Merge) Told() []string {
	if m.untold == 0 {
		return m.warnings
	}
	return append(m.warnings, fmt.Sprintf("and %d more warnings about PodDefaults", m.untold))
}

// exceedsItself reports whether the pod alone exceeds a limit.
func (m *Merge) exceedsItself() bool {
	b := &m.Pod.Bounds
	if b.Over != "" {
		m.excess = &match.Excess{All: m.Applied, Text: b.Over, Remedy: "Give it less, or no label that PodDefaults select by"}
	}
	return b.Spent()
}

// Beyond returns the exceeded limit as an [*excess], or the deadline error, or nil.
func (m *Merge) Beyond() error {
	if m.excess == nil && m.Pod.Bounds.Over != "" { // while emitting the patch
		m.excess = &match.Excess{All: m.Applied, Text: m.Pod.Bounds.Over, Remedy: "Let PodDefaults add less"}
	}
	switch {
	case m.Pod.Bounds.Fault != nil:
		return m.Pod.Bounds.Fault
	case m.excess != nil:
		return m.excess
	}
	return nil
}
