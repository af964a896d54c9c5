// SPDX-License-Identifier: Apache-2.0

package carried

import (
	"context"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sallyport-io/sallyport/cmd/internal/live/carried/owners"
	"github.com/sallyport-io/sallyport/cmd/internal/live/injection"
	"github.com/sallyport-io/sallyport/cmd/internal/live/restart"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/drift"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/store"
)

// A Drift compares the running pods of a namespace, or of all, with its PodDefaults.
type Drift struct {
	// Pods is the number of pods that were compared. Undecided are those that would be
	// refused now, and are in no other number.
	Pods      int `json:"pods"`
	Undecided int `json:"undecided"`
	// PodDefaults are the objects that a pod carries or should carry.
	PodDefaults []driftOf `json:"podDefaults"`
	// Workloads are those with pods that differ from what they would get now.
	Workloads []DriftedWorkload `json:"workloads"`
	// Exemptions are those that have not ended.
	Exemptions []DriftExemption `json:"exemptions"`
}

// A driftOf counts the pods of one object.
type driftOf struct {
	Name   string `json:"name"`
	Exists bool   `json:"exists"`
	// Revision is the object's current revision.
	Revision string              `json:"revision,omitempty"`
	Pods     map[drift.State]int `json:"pods"`
	// Revisions counts the pods that carry the object by revision. Those that
	// Kubeflow's webhook injected are below "".
	Revisions map[string]int `json:"revisions,omitempty"`
}

// A DriftedWorkload is a workload with pods that differ from what they would get now: the
// topmost controller of these pods, or the pod itself.
type DriftedWorkload struct {
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	// Pods is the number of its running pods, and Drifted of those that differ.
	Pods    int `json:"pods"`
	Drifted int `json:"drifted"`
	// PodDefaults counts its pods by object and state, without those that are current or
	// exempt.
	PodDefaults map[string]map[drift.State]int `json:"podDefaults"`
	// Missed names the pods that passed injection.
	Missed []string `json:"missed,omitempty"`
	// Restart is what `rollout restart` restarts, as kind/name: none for pods without a
	// controller, Jobs, and kinds of others. A custom kind may own several.
	Restart []string `json:"restart,omitempty"`

	targets []owners.Target
}

// Title names the workload as in kubectl.
func (w *DriftedWorkload) Title() string { return strings.ToLower(w.Kind) + "/" + w.Name }

// FindDrift compares the running pods of a namespace, or of all if it is empty. Args may
// name one object as TYPE/NAME; the others are then ignored.
func FindDrift(ctx context.Context, c *cluster.Cluster, namespace string, args []string, notes io.Writer) (*Drift, error) {
	only, err := driftOnly(ctx, c, args)
	if err != nil {
		return nil, err
	}
	f, err := newFleet(ctx, c, namespace, notes)
	if err != nil {
		return nil, err
	}
	report, workloads := drift.NewReport(), owners.New(c, namespace, notes)
	found := map[types.NamespacedName]*DriftedWorkload{} // the name has the kind
	exempted := map[*exempt.Exemption]int{}              // pods
	err = f.eachPod(ctx, namespace, store.RunningPods, func(pod *metav1.ObjectMeta) error {
		if pod.DeletionTimestamp != nil {
			return nil
		}
		findings, err := f.judge(ctx, pod)
		if err != nil {
			return err
		}
		if only != nil {
			findings = slices.DeleteFunc(slices.Clone(findings), func(f drift.Finding) bool { return f.Title != only.Plan.String() })
		}
		report.Add(findings, 1)
		for _, by := range exemptedBy(findings) {
			exempted[by]++
		}
		top, lowest, err := workloads.Of(ctx, pod)
		if err != nil {
			return err
		}
		key := types.NamespacedName{Namespace: pod.Namespace, Name: top.Kind + "/" + top.Name}
		w := found[key]
		if w == nil {
			w = &DriftedWorkload{Namespace: pod.Namespace, Kind: top.Kind, Name: top.Name, PodDefaults: map[string]map[drift.State]int{}}
			found[key] = w
		}
		w.add(pod.Name, findings, lowest)
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := newDrift(report, f.undecided, found)
	if out.Exemptions = f.inForce(exempted); only != nil {
		out.Exemptions = slices.DeleteFunc(out.Exemptions, func(e DriftExemption) bool {
			return only.Namespace != "" && only.Namespace != e.Namespace || !slices.Contains(e.Objects, only.Plan.Decision())
		})
	}
	return out, nil
}

// driftOnly returns the named object, or nil if none is named.
func driftOnly(ctx context.Context, c *cluster.Cluster, args []string) (*injection.Default, error) {
	if len(args) == 0 {
		return nil, nil
	}
	object, err := injection.Named(ctx, c, args)
	if err != nil {
		return nil, err
	}
	return injection.New(object)
}

// add counts a pod.
func (w *DriftedWorkload) add(pod string, findings []drift.Finding, lowest owners.Target) {
	w.Pods++
	drifted := false
	for _, f := range findings {
		if f.State == drift.Current || f.State == drift.Exempt {
			continue
		}
		drifted = drifted || f.State != drift.Unknown
		if f.State == drift.Missed && !slices.Contains(w.Missed, pod) {
			w.Missed = append(w.Missed, pod)
		}
		if w.PodDefaults[f.Title] == nil {
			w.PodDefaults[f.Title] = map[drift.State]int{}
		}
		w.PodDefaults[f.Title][f.State]++
	}
	if drifted {
		w.Drifted++
		if lowest.Kind != "" && !slices.Contains(w.targets, lowest) {
			w.targets = append(w.targets, lowest)
			w.Restart = append(w.Restart, strings.ToLower(lowest.Kind)+"/"+lowest.Name)
		}
	}
}

func newDrift(report *drift.Report, undecided int, workloads map[types.NamespacedName]*DriftedWorkload) *Drift {
	out := &Drift{Pods: report.Pods, Undecided: undecided, PodDefaults: []driftOf{}, Workloads: []DriftedWorkload{}, Exemptions: []DriftExemption{}}
	for _, c := range report.Objects() {
		of := driftOf{Name: c.Title, Exists: c.Object != nil, Pods: c.Pods, Revisions: c.Revisions}
		if c.Object != nil {
			of.Revision = c.Object.Revision()
		}
		out.PodDefaults = append(out.PodDefaults, of)
	}
	for _, w := range workloads {
		if len(w.PodDefaults) > 0 {
			out.Workloads = append(out.Workloads, *w)
		}
	}
	slices.SortStableFunc(out.Workloads, func(a, b DriftedWorkload) int { return compareNames(a.Namespace, a.Title(), b.Namespace, b.Title()) })
	return out
}

// Drifted reports whether a pod differs from what it would get now.
func (d *Drift) Drifted() bool {
	return slices.ContainsFunc(d.Workloads, func(w DriftedWorkload) bool { return w.Drifted > 0 })
}

// Restartable returns the workloads to restart, so that their pods no longer differ.
func (d *Drift) Restartable() []restart.Workload {
	var out []restart.Workload
	for _, w := range d.Workloads {
		for _, t := range w.targets {
			out = append(out, restart.Workload{Namespace: w.Namespace, Kind: t.Kind, Name: t.Name})
		}
	}
	return out
}

// NotRestartable returns the drifted workloads that cannot be restarted: pods without a
// controller, Jobs, and kinds of others.
func (d *Drift) NotRestartable() (others []string) {
	for i := range d.Workloads {
		if w := &d.Workloads[i]; w.Drifted > 0 && len(w.Restart) == 0 {
			others = append(others, w.Namespace+" "+w.Title())
		}
	}
	return others
}
