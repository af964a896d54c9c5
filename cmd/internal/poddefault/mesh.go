// SPDX-License-Identifier: Apache-2.0

package poddefault

import "slices"

// readMesh reads which containers are left alone because they are a mesh's. The only
// container of a pod is the application whatever its name: Istio's gateways and ztunnel.
func (m *merge) readMesh() {
	own := 0
	for i := range m.pod.app {
		if name := m.pod.app[i].name; !m.isInjected(name) && !m.leftOut.has(name) {
			own++
		}
	}
	if own != 1 {
		m.mesh = m.leftAlone.Mesh
	}
}

// passOver warns of objects that reach no container because those that they select are a
// mesh's. Such an object that adds nothing else is not applied.
func (m *merge) passOver() {
	if !slices.ContainsFunc(m.pod.app, func(t container) bool { return slices.Contains(m.mesh, t.name) }) {
		return
	}
	for _, c := range m.applied {
		if !c.reachesContainers() {
			continue
		}
		reached, passed := false, ""
		m.pickedFrom(c, func(t *container) {
			switch {
			case m.picks(c, t, m.mesh):
				reached = true
			case passed == "" && slices.Contains(m.mesh, t.name) && m.selects(c, t, nil):
				passed = t.name
			}
		})
		if reached || passed == "" {
			continue
		}
		m.warn("%s: container %s gets nothing from it, and no other container does: %s is a mesh's (the setting meshContainers)", c, passed, passed)
		if c.onlyContainers() {
			m.passed = append(m.passed, c)
		}
	}
}

// reachesContainers reports whether the object adds what the containers of a mesh do not get.
func (c *Compiled) reachesContainers() bool {
	return len(c.env)+len(c.envFrom)+len(c.volumeMounts)+len(c.containerLists)+len(c.resources) > 0 ||
		slices.ContainsFunc(c.containerValues, func(f fieldValue) bool { return !f.rule.command })
}

// onlyContainers reports whether the object adds nothing but that.
func (c *Compiled) onlyContainers() bool {
	return len(c.volumes)+len(c.tolerations)+len(c.pullSecrets)+len(c.initContainers)+len(c.containers)+
		len(c.annotations)+len(c.labels)+len(c.podLists)+len(c.podValues)+len(c.nodeTerms) == 0 &&
		!slices.ContainsFunc(c.containerValues, func(f fieldValue) bool { return f.rule.command })
}
