// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podstate"
)

// LeftAlone are names of containers that objects reach only if they name them.
type LeftAlone struct {
	// Commands are of containers whose command and args are left alone.
	Commands []string
	// Mesh are of containers of a mesh, to which only commands and args are added.
	Mesh []string
}

// picks reports whether c's additions apply to a container. Without a selector they
// apply to the pod's own containers. A container that a PodDefault adds always counts
// as injected, even if the pod already has it: otherwise a pod that is sent again would
// get more than the first time. A container named like one of a skipped object is left
// alone, because it could become that object's container. Excluded containers, such as
// mesh proxies, must be selected by name.
func (m *Merge) picks(c *plan.Plan, t *podstate.Container, excluded []string) bool {
	if c.Target != nil && c.Target.First {
		return t == m.first(c)
	}
	return m.selects(c, t, excluded)
}

// first returns the container that an object for the first container selects, or nil.
// It never returns an excluded container, even if the object names it: commands and
// variables are meant for one container.
func (m *Merge) first(c *plan.Plan) *podstate.Container {
	if known, ok := m.firsts[c]; ok {
		return known
	}
	if m.firsts == nil {
		m.firsts = map[*plan.Plan]*podstate.Container{}
	}
	m.firsts[c] = nil
	excluded := slices.Concat(m.mesh, m.leftAlone.Commands)
	if m.mesh == nil { // the only container is the application
		excluded = nil
	}
	for i := range m.Pod.App {
		if t := &m.Pod.App[i]; !m.isInjected(t.Name) && !slices.Contains(excluded, t.Name) && m.selects(c, t, excluded) {
			m.firsts[c] = t
			break
		}
	}
	return m.firsts[c]
}

func (m *Merge) selects(c *plan.Plan, t *podstate.Container, excluded []string) bool {
	m.Pod.Bounds.Did(meta.WorkOfVisit)
	if m.leftOut.Has(t.Name) {
		return false
	}
	selector := c.Target
	if selector == nil {
		return !t.Init && !m.isInjected(t.Name) && !slices.Contains(excluded, t.Name)
	}
	m.Pod.Bounds.Did((len(selector.Names) + len(selector.ExcludeNames)) / 4)
	of := kubeflowv1alpha1.TypeContainer
	switch {
	case m.isInjected(t.Name):
		of = kubeflowv1alpha1.TypeInjected
	case t.Init:
		of = kubeflowv1alpha1.TypeInitContainer
	}
	if !hasType(selector, of) || slices.Contains(selector.ExcludeNames, t.Name) {
		return false
	}
	if len(selector.Names) > 0 {
		return slices.Contains(selector.Names, t.Name)
	}
	return !slices.Contains(excluded, t.Name)
}

// hasType reports whether a selector covers containers of a type. A name selects a
// container of any type.
func hasType(selector *kubeflowv1alpha1.ContainerSelector, t kubeflowv1alpha1.ContainerType) bool {
	if len(selector.Types) == 0 {
		return t == kubeflowv1alpha1.TypeContainer || len(selector.Names) > 0
	}
	return slices.Contains(selector.Types, t)
}

func (m *Merge) isInjected(name string) bool { return m.injected.Has(name) }

// pickedFrom calls apply for each container that c may select.
func (m *Merge) pickedFrom(c *plan.Plan, apply func(*podstate.Container)) {
	b := &m.Pod.Bounds
	for i := range m.Pod.App {
		if t := &m.Pod.App[i]; t.Origin == nil && !b.Spent() { // otherwise it is replaced
			apply(t)
		}
	}
	if c.Target == nil {
		return
	}
	for i := range m.Pod.Init {
		if t := &m.Pod.Init[i]; t.Origin == nil && !b.Spent() {
			apply(t)
		}
	}
	for _, fresh := range m.fresh {
		if !b.Spent() {
			apply(fresh)
		}
	}
}
