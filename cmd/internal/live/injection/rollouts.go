// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"context"
	"io"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/live/rollout"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// revisionsOf returns a client of the cluster's revisions with the user's rights.
func revisionsOf(c *cluster.Cluster) *revision.Client {
	return revision.NewClient(c.Client.Discovery().RESTClient())
}

// ReadStable reads the stable revisions of namespaces, or of ClusterPodDefaults. It notes on
// notes what the user may not read.
func ReadStable(ctx context.Context, c *cluster.Cluster, notes io.Writer, namespaces ...string) (*revision.Set, error) {
	set := &revision.Set{}
	for _, namespace := range namespaces {
		err := revisionsOf(c).EachStable(ctx, namespace, func(r *revision.Record) {
			if r.Problem != nil {
				manifest.Note(notes, "warning: %s is ignored: %v", r, r.Problem)
			}
			set.Add(r)
		})
		switch {
		case apierrors.IsForbidden(err):
			manifest.Note(notes, "note: you may not list revisions: of PodDefaults that are being rolled out, the current revision is shown")
		case err != nil && !apierrors.IsNotFound(err):
			return nil, err
		}
	}
	return set, nil
}

// readRollouts reads the state of the rollouts of the Defaults.
func (k *Defaults) readRollouts(ctx context.Context, c *cluster.Cluster, notes io.Writer) error {
	var namespaces []string
	for _, d := range k.All {
		if d.Plan.Rolls() != nil && !slices.Contains(namespaces, d.Namespace) {
			namespaces = append(namespaces, d.Namespace)
		}
	}
	set, err := ReadStable(ctx, c, notes, namespaces...)
	if err == nil {
		k.rollOut(set, notes)
	}
	return err
}

// rollOut gives the Defaults the state that their revisions have.
func (k *Defaults) rollOut(set *revision.Set, notes io.Writer) {
	for _, d := range k.All {
		d.Plan = d.Plan.With(set)
		NoteStable(d.Plan, notes)
	}
}

// NoteStable says if the stable revision of an object that is being rolled out is not known.
func NoteStable(p *plan.Plan, notes io.Writer) {
	if p.Rolls() != nil && p.Record == nil && p.Generation() > 1 {
		manifest.Note(notes, "note: %s has spec.rollout, and its stable revision is not known: the current one is shown", p)
	}
}

// RolloutState returns the state of the object's rollout.
func (r *Revised) RolloutState() *rollout.State {
	out := &rollout.State{Object: r.Title(), State: r.state(r.Plan.Revision()), Revision: r.Plan.Revision(), Spec: r.Plan.Meaning(), Pods: r.body.Status.Pods}
	if stable, inProgress := r.Plan.RolledOut(); inProgress {
		out.Step, out.Steps = r.Plan.Step(), len(r.Spec.Rollout.Steps)
		if stable != nil {
			out.Stable = stable.Revision()
		}
		if status := r.body.Status.Rollout; status != nil && int(status.Step) == out.Step {
			out.StepStarted = status.StepStartTime
		}
	}
	if c := meta.FindStatusCondition(r.body.Status.Conditions, kubeflowv1alpha1.ConditionRolloutHealthy); c != nil && c.Status == metav1.ConditionFalse {
		out.Unhealthy = c.Message
	}
	return out
}
