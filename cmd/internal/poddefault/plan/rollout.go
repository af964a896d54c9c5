// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
)

// A Rollout is in progress: some pods get the current revision of an object, the others
// the stable one. It follows from the object's spec and the [revision.Record] of its stable
// revision, so replicas that have read the same decide the same, also after a restart. The
// status plays no part.
type Rollout struct {
	Current *Plan
	// Stable is nil if it is not known yet: the object got spec.rollout in the same write
	// as another change, and this replica has started since. The controller then records
	// it.
	Stable *Plan
	step   int           // of the current revision, counted from 1
	Steps  []RolloutStep // up to the current one; none if all pods get the stable revision
	PerPod bool
	Tally  *tally // of the current revision
}

// A RolloutStep is a step that pods may be included in.
type RolloutStep struct {
	Percent          uint64
	Pods, Namespaces labels.Selector // nil selects all
}

// Stage determines whether a rollout of the object is in progress. Before is the object
// as this replica knew it, or nil. It has no rollout if nobody knows revisions.
func (c *Plan) Stage(revisions revision.Source, before *Plan) {
	c.Rollout, c.Record = nil, nil
	if c.rolls == nil || revisions == nil {
		return
	}
	if before != nil && before.UID != c.UID {
		before = nil
	}
	r := &Rollout{Current: c, PerPod: c.rolls.By == kubeflowv1alpha1.RolloutByPod}
	c.Record = revisions.Stable(c.Owner())
	switch {
	case c.Record != nil && c.Record.Name == c.revision && c.problem == nil:
		return
	case c.Record != nil:
		r.Stable = c.revised(c.Record.Meaning)
		if state := c.Record.Rollout; state != nil && state.Revision == c.revision {
			r.step = int(state.Step)
		}
	case c.generation <= 1: // the first revision
		return
	case before == nil && !revisions.Keeps(c.namespace):
		return
	case before == nil:
	case before.Rollout == nil:
		if !revisions.Keeps(c.namespace) || before.revision == c.revision {
			return
		}
		r.Stable = c.revised(before.Meaning())
	case before.Rollout.Stable != nil:
		if before.Rollout.Stable.revision == c.revision && c.problem == nil {
			return
		}
		r.Stable = c.revised(before.Rollout.Stable.Meaning())
		if before.revision == c.revision {
			r.step = before.Rollout.step
		}
	}
	if c.problem == nil && c.rolls.AbortedRevision != c.revision {
		for _, step := range c.rolls.Steps[:max(0, min(r.step, len(c.rolls.Steps)))] {
			r.Steps = append(r.Steps, compileStep(step))
		}
	}
	if before != nil && before.Rollout != nil && before.revision == c.revision {
		r.Tally = before.Rollout.Tally
	} else {
		r.Tally = &tally{refused: map[string]bool{}}
	}
	c.Rollout = r
	if r.Stable != nil {
		r.Stable.Rollout = r
	}
}

// Restaged returns the object with what is known of its revisions now. It returns the same
// object if nothing has changed.
func (c *Plan) Restaged(revisions revision.Source) *Plan {
	if c.rolls == nil || revisions == nil || revisions.Stable(c.Owner()) == c.Record {
		return c
	}
	out := &Plan{Head: c.Head, packed: c.packed}
	if c.packed == nil {
		out.Additions = c.Additions
	}
	out.Stage(revisions, c)
	return out
}

// revised returns the object in the revision with this meaning, or nil if that cannot be
// read.
func (c *Plan) revised(meaning []byte) *Plan {
	about := metav1.ObjectMeta{Namespace: c.namespace, Name: c.name, UID: c.UID, ResourceVersion: c.ResourceVersion, Generation: c.generation}
	if c.Cluster() {
		cpd := &sallyportv1alpha1.ClusterPodDefault{ObjectMeta: about, Status: c.status}
		if json.Unmarshal(meaning, &cpd.Spec) != nil {
			return nil
		}
		return PackCluster(cpd, nil, nil)
	}
	pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: about, Status: c.status}
	if json.Unmarshal(meaning, &pd.Spec) != nil {
		return nil
	}
	return Pack(pd, nil, nil)
}

// compileStep prepares a step of a valid object.
func compileStep(step kubeflowv1alpha1.RolloutStep) RolloutStep {
	out := RolloutStep{Percent: 100}
	if step.Percent != nil {
		out.Percent = uint64(max(0, *step.Percent)) // it is not negative
	}
	selector := func(s *metav1.LabelSelector) labels.Selector {
		if s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
			return nil
		}
		selector, err := metav1.LabelSelectorAsSelector(s)
		if err != nil { // the object is valid
			return labels.Nothing()
		}
		return selector
	}
	out.Pods, out.Namespaces = selector(step.PodSelector), selector(step.NamespaceSelector)
	return out
}

// NeedsNamespace reports whether the labels of namespaces decide about the object.
func (h *Head) NeedsNamespace() bool {
	return h.namespaces != nil || h.Rollout != nil &&
		slices.ContainsFunc(h.Rollout.Steps, func(s RolloutStep) bool { return s.Namespaces != nil })
}

// RolledOut returns the stable revision of an object while a rollout is in progress, and
// nil otherwise or if it is not known yet.
func (p *Progress) RolledOut() (stable *Plan, inProgress bool) {
	if p.Rollout == nil {
		return nil, false
	}
	return p.Rollout.Stable, true
}

// Step returns the step of the current revision in a rollout in progress, counted from 1; 0
// if no pod gets the current revision.
func (p *Progress) Step() int {
	if p.Rollout == nil || len(p.Rollout.Steps) == 0 {
		return 0
	}
	return p.Rollout.step
}

// Rolls returns spec.rollout, or nil. It must not be changed.
func (p *Progress) Rolls() *kubeflowv1alpha1.Rollout { return p.rolls }

// maxTallied limits the workloads that a tally remembers.
const maxTallied = 10_000

// A tally knows which workloads this replica has refused because of a revision that is
// rolled out. Refused pods exist nowhere else.
type tally struct {
	mu      sync.Mutex
	refused map[string]bool // by workload, from its last pod
}

func (t *tally) Add(workload string, refused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.refused[workload]; known || len(t.refused) < maxTallied {
		t.refused[workload] = refused
	}
}

// Refusals calls visit for each workload that this replica has given the current revision
// to since its rollout began, or refused because of it.
func (p *Progress) Refusals(visit func(namespace string, refused bool)) {
	if p.Rollout == nil {
		return
	}
	t := p.Rollout.Tally
	t.mu.Lock()
	defer t.mu.Unlock()
	for workload, refused := range t.refused {
		namespace, _, _ := strings.Cut(workload, "/")
		visit(namespace, refused)
	}
}

// Progress is the revision that an object has, and how far a rollout has brought it.
type Progress struct {
	revision string                    // see Revision
	rolls    *kubeflowv1alpha1.Rollout // spec.rollout; nil if there is none
	Record   *revision.Record          // of the stable revision, from which rollout follows; may be nil
	Rollout  *Rollout                  // nil if none is in progress
}

// Revision is the name of the object's revision. It is empty for an object that is too
// large for any pod.
func (p *Progress) Revision() string { return p.revision }
