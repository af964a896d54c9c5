// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"slices"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
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
func (m *merge) picks(c *Compiled, t *container, excluded []string) bool {
	if c.target != nil && c.target.First {
		return t == m.first(c)
	}
	return m.selects(c, t, excluded)
}

// first returns the container that an object for the first container selects, or nil.
// It never returns an excluded container, even if the object names it: commands and
// variables are meant for one container.
func (m *merge) first(c *Compiled) *container {
	if known, ok := m.firsts[c]; ok {
		return known
	}
	if m.firsts == nil {
		m.firsts = map[*Compiled]*container{}
	}
	m.firsts[c] = nil
	excluded := slices.Concat(m.mesh, m.leftAlone.Commands)
	if m.mesh == nil { // the only container is the application
		excluded = nil
	}
	for i := range m.pod.app {
		if t := &m.pod.app[i]; !m.isInjected(t.name) && !slices.Contains(excluded, t.name) && m.selects(c, t, excluded) {
			m.firsts[c] = t
			break
		}
	}
	return m.firsts[c]
}

func (m *merge) selects(c *Compiled, t *container, excluded []string) bool {
	m.pod.bounds.did(workOfVisit)
	if m.leftOut.has(t.name) {
		return false
	}
	selector := c.target
	if selector == nil {
		return !t.init && !m.isInjected(t.name) && !slices.Contains(excluded, t.name)
	}
	m.pod.bounds.did((len(selector.Names) + len(selector.ExcludeNames)) / 4)
	of := kubeflowv1alpha1.TypeContainer
	switch {
	case m.isInjected(t.name):
		of = kubeflowv1alpha1.TypeInjected
	case t.init:
		of = kubeflowv1alpha1.TypeInitContainer
	}
	if !hasType(selector, of) || slices.Contains(selector.ExcludeNames, t.name) {
		return false
	}
	if len(selector.Names) > 0 {
		return slices.Contains(selector.Names, t.name)
	}
	return !slices.Contains(excluded, t.name)
}

// hasType reports whether a selector covers containers of a type. A name selects a
// container of any type.
func hasType(selector *kubeflowv1alpha1.ContainerSelector, t kubeflowv1alpha1.ContainerType) bool {
	if len(selector.Types) == 0 {
		return t == kubeflowv1alpha1.TypeContainer || len(selector.Names) > 0
	}
	return slices.Contains(selector.Types, t)
}

func (m *merge) isInjected(name string) bool { return m.injected.has(name) }

// pickedFrom calls apply for each container that c may select.
func (m *merge) pickedFrom(c *Compiled, apply func(*container)) {
	b := &m.pod.bounds
	for i := range m.pod.app {
		if t := &m.pod.app[i]; t.origin == nil && !b.spent() { // otherwise it is replaced
			apply(t)
		}
	}
	if c.target == nil {
		return
	}
	for i := range m.pod.init {
		if t := &m.pod.init[i]; t.origin == nil && !b.spent() {
			apply(t)
		}
	}
	for _, fresh := range m.fresh {
		if !b.spent() {
			apply(fresh)
		}
	}
}
