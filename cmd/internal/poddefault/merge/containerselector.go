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

// reach is which containers of a pod objects apply to.
type reach struct {
	pod       *podstate.Pod
	leftAlone *LeftAlone
	mesh      []string              // containers left alone because they are a mesh's
	injected  meta.NameSet          // names of containers added by PodDefaults
	fresh     []*podstate.Container // added containers that the pod does not have
	leftOut   meta.NameSet          // names of containers of skipped objects
	firsts    map[*plan.Plan]*podstate.Container
}

// picks reports whether c's additions apply to a container. Without a selector they
// apply to the pod's own containers. A container that a PodDefault adds always counts
// as injected, even if the pod already has it: otherwise a pod that is sent again would
// get more than the first time. A container named like one of a skipped object is left
// alone, because it could become that object's container. Excluded containers, such as
// mesh proxies, must be selected by name.
func (r *reach) picks(c *plan.Plan, t *podstate.Container, excluded []string) bool {
	if c.Target != nil && c.Target.First {
		return t == r.first(c)
	}
	return r.selects(c, t, excluded)
}

// first returns the container that an object for the first container selects, or nil.
// It never returns an excluded container, even if the object names it: commands and
// variables are meant for one container.
func (r *reach) first(c *plan.Plan) *podstate.Container {
	if known, ok := r.firsts[c]; ok {
		return known
	}
	if r.firsts == nil {
		r.firsts = map[*plan.Plan]*podstate.Container{}
	}
	r.firsts[c] = nil
	excluded := slices.Concat(r.mesh, r.leftAlone.Commands)
	if r.mesh == nil { // the only container is the application
		excluded = nil
	}
	for i := range r.pod.App {
		if t := &r.pod.App[i]; !r.isInjected(t.Name) && !slices.Contains(excluded, t.Name) && r.selects(c, t, excluded) {
			r.firsts[c] = t
			break
		}
	}
	return r.firsts[c]
}

func (r *reach) selects(c *plan.Plan, t *podstate.Container, excluded []string) bool {
	r.pod.Bounds.Did(meta.WorkOfVisit)
	if r.leftOut.Has(t.Name) {
		return false
	}
	selector := c.Target
	if selector == nil {
		return !t.Init && !r.isInjected(t.Name) && !slices.Contains(excluded, t.Name)
	}
	r.pod.Bounds.Did((len(selector.Names) + len(selector.ExcludeNames)) / 4)
	of := kubeflowv1alpha1.TypeContainer
	switch {
	case r.isInjected(t.Name):
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

func (r *reach) isInjected(name string) bool { return r.injected.Has(name) }

// pickedFrom calls apply for each container that c may select.
func (r *reach) pickedFrom(c *plan.Plan, apply func(*podstate.Container)) {
	b := &r.pod.Bounds
	for i := range r.pod.App {
		if t := &r.pod.App[i]; t.Origin == nil && !b.Spent() { // otherwise it is replaced
			apply(t)
		}
	}
	if c.Target == nil {
		return
	}
	for i := range r.pod.Init {
		if t := &r.pod.Init[i]; t.Origin == nil && !b.Spent() {
			apply(t)
		}
	}
	for _, fresh := range r.fresh {
		if !b.Spent() {
			apply(fresh)
		}
	}
}

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

// takes reports whether a container may have a field and c applies it to that
// container.
func (r *reach) takes(t *podstate.Container, c *plan.Plan, rule *plan.ValueRule) bool {
	excluded := r.mesh
	if rule.Command {
		excluded = r.leftAlone.Commands
	}
	return r.picks(c, t, excluded) && (!rule.Running || !t.Init || t.Native())
}
