// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/sallyport-io/sallyport/admission"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// A rollout is in progress: some pods get the current revision of an object, the others
// the stable one. It follows from the object's spec and the [revision.Record] of its stable
// revision, so replicas that have read the same decide the same, also after a restart. The
// status plays no part.
type rollout struct {
	current *Compiled
	// stable is nil if it is not known yet: the object got spec.rollout in the same write
	// as another change, and this replica has started since. The controller then records
	// it.
	stable *Compiled
	step   int           // of the current revision, counted from 1
	steps  []rolloutStep // up to the current one; none if all pods get the stable revision
	perPod bool
	tally  *tally // of the current revision
}

type rolloutStep struct {
	percent          uint64
	pods, namespaces labels.Selector // nil selects all
}

// stage determines whether a rollout of the object is in progress. Before is the object
// as this replica knew it, or nil. It has no rollout if nobody knows revisions.
func (c *Compiled) stage(revisions revision.Source, before *Compiled) {
	c.rollout, c.record = nil, nil
	if c.rolls == nil || revisions == nil {
		return
	}
	if before != nil && before.uid != c.uid {
		before = nil
	}
	r := &rollout{current: c, perPod: c.rolls.By == kubeflowv1alpha1.RolloutByPod}
	c.record = revisions.Stable(c.owner())
	switch {
	case c.record != nil && c.record.Name == c.revision && c.problem == nil:
		return
	case c.record != nil:
		r.stable = c.revised(c.record.Meaning)
		if state := c.record.Rollout; state != nil && state.Revision == c.revision {
			r.step = int(state.Step)
		}
	case c.generation <= 1: // the first revision
		return
	case before == nil && !revisions.Keeps(c.namespace):
		return
	case before == nil:
	case before.rollout == nil:
		if !revisions.Keeps(c.namespace) || before.revision == c.revision {
			return
		}
		r.stable = c.revised(before.Meaning())
	case before.rollout.stable != nil:
		if before.rollout.stable.revision == c.revision && c.problem == nil {
			return
		}
		r.stable = c.revised(before.rollout.stable.Meaning())
		if before.revision == c.revision {
			r.step = before.rollout.step
		}
	}
	if c.problem == nil && c.rolls.AbortedRevision != c.revision {
		for _, step := range c.rolls.Steps[:max(0, min(r.step, len(c.rolls.Steps)))] {
			r.steps = append(r.steps, compileStep(step))
		}
	}
	if before != nil && before.rollout != nil && before.revision == c.revision {
		r.tally = before.rollout.tally
	} else {
		r.tally = &tally{refused: map[string]bool{}}
	}
	c.rollout = r
	if r.stable != nil {
		r.stable.rollout = r
	}
}

// restaged returns the object with what is known of its revisions now. It returns the same
// object if nothing has changed.
func (c *Compiled) restaged(revisions revision.Source) *Compiled {
	if c.rolls == nil || revisions == nil || revisions.Stable(c.owner()) == c.record {
		return c
	}
	out := &Compiled{identity: c.identity, packed: c.packed}
	if c.packed == nil {
		out.additions = c.additions
	}
	out.stage(revisions, c)
	return out
}

// owner is the object as the owner of its revisions.
func (c *Compiled) owner() revision.Owner {
	return revision.Owner{Namespace: c.namespace, UID: c.uid}
}

// revised returns the object in the revision with this meaning, or nil if that cannot be
// read.
func (c *Compiled) revised(meaning []byte) *Compiled {
	about := metav1.ObjectMeta{Namespace: c.namespace, Name: c.name, UID: c.uid, ResourceVersion: c.resourceVersion, Generation: c.generation}
	if c.Cluster() {
		cpd := &sallyportv1alpha1.ClusterPodDefault{ObjectMeta: about, Status: c.status}
		if json.Unmarshal(meaning, &cpd.Spec) != nil {
			return nil
		}
		return packCluster(cpd, nil, nil)
	}
	pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: about, Status: c.status}
	if json.Unmarshal(meaning, &pd.Spec) != nil {
		return nil
	}
	return pack(pd, nil, nil)
}

// compileStep prepares a step of a valid object.
func compileStep(step kubeflowv1alpha1.RolloutStep) rolloutStep {
	out := rolloutStep{percent: 100}
	if step.Percent != nil {
		out.percent = uint64(max(0, *step.Percent)) //nolint:gosec // it is not negative
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
	out.pods, out.namespaces = selector(step.PodSelector), selector(step.NamespaceSelector)
	return out
}

// needsNamespace reports whether the labels of namespaces decide about the object.
func (c *Compiled) needsNamespace() bool {
	return c.namespaces != nil || c.rollout != nil &&
		slices.ContainsFunc(c.rollout.steps, func(s rolloutStep) bool { return s.namespaces != nil })
}

// RolledOut returns the stable revision of an object while a rollout is in progress, and
// nil otherwise or if it is not known yet.
func (c *Compiled) RolledOut() (stable *Compiled, inProgress bool) {
	if c.rollout == nil {
		return nil, false
	}
	return c.rollout.stable, true
}

// Step returns the step of the current revision in a rollout in progress, counted from 1; 0
// if no pod gets the current revision.
func (c *Compiled) Step() int {
	if c.rollout == nil || len(c.rollout.steps) == 0 {
		return 0
	}
	return c.rollout.step
}

// StableRecord returns what is recorded of the stable revision; nil if nothing is known.
func (c *Compiled) StableRecord() *revision.Record { return c.record }

// Rolls returns spec.rollout, or nil. It must not be changed.
func (c *Compiled) Rolls() *kubeflowv1alpha1.Rollout { return c.rolls }

// An arrival decides which revisions a pod gets. It is the same each time that the API
// server calls for the pod, except for marks from earlier calls.
//
// Keep it off the heap: no field may escape to an interface, or each review allocates the
// pod's metadata.
type arrival struct {
	*metadata
	bounds *bounds
}

// resolve replaces the selected objects of which a rollout is in progress by the revision
// that the pod gets. Outside are those that do not select the pod in that revision. The
// pinned objects are selected in any revision.
func (a *arrival) resolve(source Source, selected, pinned []*Compiled) (resolved, outside []*Compiled, err error) {
	if len(pinned) == 0 && !slices.ContainsFunc(selected, func(c *Compiled) bool { return c.rollout != nil }) {
		return selected, nil, nil
	}
	namespace := source.NamespaceLabels(a.namespace)
	selected = slices.DeleteFunc(selected, func(c *Compiled) bool { return isIn(pinned, c) })
	for _, c := range append(selected, pinned...) {
		r := c.rollout
		switch {
		case r == nil:
			resolved = append(resolved, c)
			continue
		case r.stable == nil:
			return nil, nil, admission.Unavailable(fmt.Errorf("%s is being rolled out, and its stable revision is not known yet", c), time.Second)
		}
		gets := r.stable
		if a.getsCurrent(r, namespace) {
			gets = r.current
		}
		if gets == c || gets.version == c.version || isIn(pinned, c) { // only one revision is filed if both select the same pods
			resolved = append(resolved, gets)
		} else {
			outside = append(outside, c)
		}
	}
	outside = slices.DeleteFunc(outside, func(c *Compiled) bool { return isIn(resolved, c) })
	if len(pinned) > 0 {
		slices.SortFunc(resolved, inOrder)
	}
	return resolved, outside, nil
}

// getsCurrent reports whether the pod gets the current revision, given the labels of its
// namespace. A pod that an earlier call for the same request has marked keeps its revision,
// although another replica may have entered a step.
func (a *arrival) getsCurrent(r *rollout, namespace labels.Set) bool {
	if len(r.steps) == 0 {
		return false
	}
	if resourceVersion, revision, applied := kept(a.metadata, r.current, a.bounds); applied {
		if r.current.wrote(resourceVersion, revision) { // or a server that knows no revisions, and gives all pods the current one
			return true
		}
		if revision == r.stable.revision {
			return false
		}
	}
	return slices.ContainsFunc(r.steps, func(s rolloutStep) bool {
		return (s.namespaces == nil || s.namespaces.Matches(namespace)) && (s.pods == nil || s.pods.Matches(a.labels)) &&
			(s.percent >= 100 || s.percent > 0 && r.perPod && a.unplaced || a.place(r) < s.percent)
	})
}

// place returns a number below 100 for the pod or its workload: those with a number below
// a percentage are included. It differs between objects, so that not all of them try a
// change on the same workloads first.
func (a *arrival) place(r *rollout) uint64 {
	unit := a.pod
	if !r.perPod {
		unit = func() string { return workloadOf(a.metadata, a.bounds).unit }
	}
	sum := sha256.Sum256([]byte(r.current.title + "\n" + a.namespace + "\n" + unit()))
	return binary.BigEndian.Uint64(sum[:]) % 100
}

// pod names the pod. A pod with a generated name has none yet.
func (a *arrival) pod() string {
	a.complete()
	if name, ok := rawjson.Lookup(a.raw, "name"); ok && len(name) > len(`""`) && name.Kind() == '"' {
		return a.name
	}
	return string(a.request)
}

// timestampDigits is the least number of digits at the end of the name of a CronJob's Job:
// minutes since 1970.
const timestampDigits = 8

// A Workload is what a pod belongs to, in the pod's namespace.
type Workload struct {
	APIVersion, Kind, Name string

	// unit identifies it in rollouts, by the kind of the pod's owner: changing it changes
	// which workloads are within a percentage.
	unit string
}

// workloadOf returns the workload of a pod: the Deployment of its ReplicaSet, the CronJob of
// its Job, its controller, or the pod by its name or generateName. Names of owners do not
// change when a workload gets a new template.
func workloadOf(pod *metadata, b *bounds) Workload {
	if pod.workload.unit == "" {
		controller := controllerOf(pod, b) // it reads the name, too
		pod.workload = workloadBy(controller, pod.name, pod.labels.Get(appsv1.DefaultDeploymentUniqueLabelKey))
	}
	return pod.workload
}

// WorkloadOf identifies the workload of a pod for rollouts and exemptions, within the pod's
// namespace.
func WorkloadOf(pod *metav1.ObjectMeta) string {
	var controller Workload
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		controller = Workload{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name}
	}
	return workloadBy(controller, cmp.Or(pod.Name, pod.GenerateName), pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]).unit
}

// workloadBy returns the workload of a pod by its controller, which may have no name, its
// own name, and the hash of its template.
func workloadBy(w Workload, pod, hash string) Workload {
	if w.Name == "" {
		w = Workload{APIVersion: "v1", Kind: "Pod", Name: pod}
	}
	owner := w.Kind
	switch owner {
	case "ReplicaSet":
		if hash != "" {
			w.Kind, w.Name = "Deployment", strings.TrimSuffix(w.Name, "-"+hash)
		}
	case "Job":
		if short := strings.TrimRight(w.Name, "0123456789"); len(w.Name)-len(short) >= timestampDigits {
			w.Kind, w.Name = "CronJob", strings.TrimSuffix(short, "-")
		}
	}
	w.unit = owner + "/" + w.Name
	return w
}

// controllerOf returns the pod's controller, without a name if it has none.
func controllerOf(pod *metadata, b *bounds) (controller Workload) {
	pod.complete()
	raw, _ := rawjson.Lookup(pod.raw, "ownerReferences")
	b.scans(len(pod.raw))
	owners := rawjson.NewReader(raw)
	owners.Array(func(int) {
		var version, kind, name []byte
		controls := false
		owners.Object(func(field []byte) {
			switch string(field) {
			case "apiVersion":
				version, _ = owners.String()
			case "kind":
				kind, _ = owners.String()
			case "name":
				name, _ = owners.String()
			case "controller":
				controls = owners.Kind() == 't'
			}
		})
		if controls {
			controller = Workload{APIVersion: string(version), Kind: string(kind), Name: string(name)}
			owners.Stop()
		}
	})
	return controller
}
