// SPDX-License-Identifier: Apache-2.0

// Package merge folds plans into a pod: it declares what they bring, tries one after the other,
// finishes what does not depend on their order, and checks the result.
//
// In go a pod and a match; out comes a patch with the origin of each change, or a denial with all
// conflicts. A conflict is decided in the turn of its plan. The only steps that look ahead are those
// that declare names, and a fold that starts anew without a plan that was dropped, at most once for
// each.
package merge

import (
	"fmt"
	"slices"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/check"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podstate"
)

// A Merge applies PodDefaults to one pod. It changes nothing until all of them are
// merged. If there is no conflict it emits everything, otherwise the whole pod is
// denied.
//
// Each part knows only those below it: an adder tries what one object wants, an arbiter resolves
// what it finds in the way, and what they share is the trial, the containers in reach, the metadata
// so far, the conflicts and the warnings.
type Merge struct {
	adder

	invalid []*plan.Plan // chosen, but cannot work in this pod
	passed  []*plan.Plan // applied to nothing, because of a mesh
	skipped []skip
	Audited []*plan.Plan
	Outside []*plan.Plan // see [match.Match]
}

// All tries the matched objects, except skipped ones, one after the other. It stops at
// the first that is to be dropped: see [conflicts.dropped].
func All(p *podstate.Pod, chosen match.Match, skipped []skip, leftAlone *LeftAlone) *Merge {
	m := &Merge{Outside: chosen.Outside, skipped: skipped}
	m.Pod, m.conflicts.pod = p, p
	m.reach.pod, m.leftAlone = p, leftAlone
	m.metadata.pod, m.namespace = p, chosen.Namespace
	candidates := chosen.Objects
	if chosen.Audits || len(skipped) > 0 {
		candidates = make([]*plan.Plan, 0, len(chosen.Objects))
		for _, c := range chosen.Objects {
			switch {
			case c.Audit && c.Problem() == nil:
				m.Audited = append(m.Audited, c)
			case !isSkipped(skipped, c):
				candidates = append(candidates, c)
			}
		}
	}
	m.Applied, m.invalid = usable(p, candidates)
	if p.Bounds.Applied = len(m.Applied); m.exceedsItself() {
		return m
	}
	m.declare()
	m.addAllContainers()
	for i, c := range m.Applied {
		if m.index = i; m.stops() {
			return m
		}
		m.apply(c)
		m.exceeded(c, func() string { return "the pod" })
	}
	if m.stops() {
		return m
	}
	if len(m.entries) > 0 {
		m.annotationSize()
	}
	result := check.Finished{Pod: m.Pod, Applied: m.Applied, Fresh: m.fresh, Refuse: m.impossible}
	if result.Check(); m.dropped == nil {
		m.warnOfAll()
	}
	return m
}

// declare records the names of containers that objects bring, and that skipped ones would bring.
func (m *Merge) declare() {
	for _, s := range m.skipped { // the pod will carry marks only of these
		m.leaveOut(s.object)
	}
	for _, c := range m.Applied {
		for _, list := range [][]plan.Item{c.Containers, c.InitContainers} {
			for _, added := range list {
				m.injected.Add(added.Key)
			}
		}
	}
	m.readMesh()
}

// addAllContainers adds labels and containers, because an object may select a container that
// a later one brings.
func (m *Merge) addAllContainers() {
	p := m.Pod
	for i, c := range m.Applied {
		if m.index = i; m.stops() {
			return
		}
		if c.Template != nil {
			if c = m.fill(c); c == nil {
				continue
			}
			m.Applied[i] = c
		}
		for _, l := range c.Labels {
			m.setLabel(l, c)
		}
		if len(c.InitContainers)+len(c.Containers) == 0 {
			continue
		}
		m.addContainers(&p.InitContainers, &p.Containers, c.InitContainers, plan.InitContainersList)
		m.addContainers(&p.Containers, &p.InitContainers, c.Containers, plan.ContainersList)
		if len(p.Containers.Added)+len(p.InitContainers.Added)+len(p.App)+len(p.Init) > meta.MaxContainers {
			p.Bounds.Exceed(fmt.Sprintf("with it the pod would have more than %d", meta.MaxContainers))
		}
		m.exceeded(c, func() string { return "container" })
	}
}

// stops reports whether the rest need not be tried: an object is dropped, or a limit exceeded.
func (m *Merge) stops() bool { return m.dropped != nil || m.Pod.Bounds.Spent() }

// warnOfAll warns of what is not a conflict.
func (m *Merge) warnOfAll() {
	for _, c := range m.Applied {
		m.warnOfSeveral(c)
	}
	m.passOver()
	for _, c := range m.invalid {
		m.warn("%s was not applied: %s", c, unusableBecause(c))
	}
	for _, s := range m.skipped {
		m.warn("%s was skipped: %s", s.object, s.reason)
	}
}

// leaveOut records the containers of an object that is not applied.
func (r *reach) leaveOut(c *plan.Plan) {
	for _, list := range [][]plan.Item{c.Containers, c.InitContainers} {
		for _, left := range list {
			r.leftOut.Add(left.Key)
		}
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

// usable separates PodDefaults that cannot work, because of their own problem or
// because they mount a volume that neither the pod nor another object has. The API
// server would refuse the pod because of them.
func usable(p *podstate.Pod, chosen []*plan.Plan) (applied, invalid []*plan.Plan) {
	applied = slices.DeleteFunc(slices.Clone(chosen), func(c *plan.Plan) bool { return c.Problem() != nil })
	if gone := p.Dangling(applied); len(gone) > 0 {
		applied = slices.DeleteFunc(applied, func(c *plan.Plan) bool { return gone[c] })
	}
	if len(applied) == len(chosen) {
		return applied, nil
	}
	next := 0
	for _, c := range chosen {
		if next < len(applied) && applied[next] == c {
			next++
		} else {
			invalid = append(invalid, c)
		}
	}
	return applied, invalid
}
