// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// States of a rollout besides its steps.
const (
	current = "current"
	aborted = "aborted"
)

// revisionsOf returns a client of the cluster's revisions with the user's rights.
func revisionsOf(c *cluster.Cluster) *revision.Client {
	return revision.NewClient(c.Client.Discovery().RESTClient())
}

// readStable reads the stable revisions of namespaces, or of ClusterPodDefaults. It notes on
// notes what the user may not read.
func readStable(ctx context.Context, c *cluster.Cluster, notes io.Writer, namespaces ...string) (*revision.Set, error) {
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
	for _, d := range k.all {
		if d.compiled.Rolls() != nil && !slices.Contains(namespaces, d.Namespace) {
			namespaces = append(namespaces, d.Namespace)
		}
	}
	set, err := readStable(ctx, c, notes, namespaces...)
	if err == nil {
		k.rollOut(set, notes)
	}
	return err
}

// rollOut gives the Defaults the state that their revisions have.
func (k *Defaults) rollOut(set *revision.Set, notes io.Writer) {
	for _, d := range k.all {
		d.compiled = d.compiled.With(set)
		if d.compiled.Rolls() != nil && d.compiled.StableRecord() == nil && d.Generation > 1 {
			manifest.Note(notes, "note: %s has spec.rollout, and its stable revision is not known: the current one is shown", d.compiled)
		}
	}
}

// A RolloutState is how far a change of a PodDefault or ClusterPodDefault has got.
type RolloutState struct {
	Object string `json:"object"`
	// State is current (all new pods get the revision), step N of M, not begun, or aborted.
	State    string `json:"state"`
	Revision string `json:"revision"`
	// Stable is the revision of the pods that no step includes yet; empty if no rollout is in progress.
	Stable string `json:"stableRevision,omitempty"`
	Step   int    `json:"step,omitempty"`
	Steps  int    `json:"steps,omitempty"`
	// StepStarted is when the step began.
	StepStarted *metav1.Time `json:"stepStartTime,omitempty"`
	// Unhealthy is the message of the condition RolloutHealthy while that is False.
	Unhealthy string                      `json:"unhealthy,omitempty"`
	Pods      *kubeflowv1alpha1.PodCounts `json:"pods,omitempty"`
}

// RolloutState returns the state of the object's rollout.
func (r *Revised) RolloutState() *RolloutState {
	out := &RolloutState{Object: r.Title(), State: r.state(r.current()), Revision: r.current(), Pods: r.body.Status.Pods}
	if stable, inProgress := r.compiled.RolledOut(); inProgress {
		out.Step, out.Steps = r.compiled.Step(), len(r.spec.Rollout.Steps)
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

// Aborted reports whether the change reaches no more pods until it is changed.
func (s *RolloutState) Aborted() bool { return s.State == aborted }

// Complete reports whether all new pods get the revision.
func (s *RolloutState) Complete() bool { return s.State == current }

// Line is the state in one line.
func (s *RolloutState) Line() string {
	text := s.Object + ": revision " + revision.Short(s.Revision)
	switch {
	case s.Complete():
		text += ": all new pods get it"
	case s.Stable != "":
		text += ": " + s.State + "; other new pods get revision " + revision.Short(s.Stable)
	default:
		text += ": " + s.State
	}
	if s.StepStarted != nil {
		text += "; the step began " + duration.HumanDuration(time.Since(s.StepStarted.Time)) + " ago"
	}
	if p := s.Pods; p != nil {
		text += fmt.Sprintf("; running pods: %d with it, %d without", p.Current, p.Outdated+p.Unknown+p.Missing+p.Missed)
	}
	if s.Unhealthy != "" {
		text += "; " + kubeflowv1alpha1.ConditionRolloutHealthy + " is False: " + s.Unhealthy
	}
	return manifest.PrintableLine(text)
}
