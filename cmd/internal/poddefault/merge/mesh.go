// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podstate"
)

// readMesh reads which containers are left alone because they are a mesh's. The only
// container of a pod is the application whatever its name: Istio's gateways and ztunnel.
func (r *reach) readMesh() {
	own := 0
	for i := range r.pod.App {
		if name := r.pod.App[i].Name; !r.isInjected(name) && !r.leftOut.Has(name) {
			own++
		}
	}
	if own != 1 {
		r.mesh = r.leftAlone.Mesh
	}
}

// passOver warns of objects that reach no container because those that they select are a
// mesh's. Such an object that adds nothing else is not applied.
func (m *Merge) passOver() {
	ofMesh := func(t podstate.Container) bool { return slices.Contains(m.mesh, t.Name) }
	if !slices.ContainsFunc(m.Pod.App, ofMesh) && !slices.ContainsFunc(m.Pod.Init, ofMesh) {
		return
	}
	for _, c := range m.Applied {
		if !c.ReachesContainers() {
			continue
		}
		reached, passed := false, ""
		m.pickedFrom(c, func(t *podstate.Container) {
			switch {
			case m.picks(c, t, m.mesh):
				reached = true
			case passed == "" && slices.Contains(m.mesh, t.Name) && m.selects(c, t, nil):
				passed = t.Name
			}
		})
		if reached || passed == "" {
			continue
		}
		m.warn("%s: container %s gets nothing from it, and no other container does: %s is a mesh's (the setting meshContainers)", c, passed, passed)
		if c.OnlyContainers() {
			m.passed = append(m.passed, c)
		}
	}
}
