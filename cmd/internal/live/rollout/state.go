// SPDX-License-Identifier: Apache-2.0

// Package rollout prints revisions of PodDefaults, and how far a change of one has got.
package rollout

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// States of a rollout besides its steps.
const (
	Current = "current"
	Aborted = "aborted"
)

// A State is how far a change of a PodDefault or ClusterPodDefault has got.
type State struct {
	Object string `json:"object"`
	// State is current (all new pods get the revision), step N of M, not begun, or aborted.
	State    string `json:"state"`
	Revision string `json:"revision"`
	// Spec is that of the revision, as JSON.
	Spec []byte `json:"-"`
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

// Aborted reports whether the change reaches no more pods until it is changed.
func (s *State) Aborted() bool { return s.State == Aborted }

// Complete reports whether all new pods get the revision.
func (s *State) Complete() bool { return s.State == Current }

// Line is the state in one line.
func (s *State) Line() string {
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
