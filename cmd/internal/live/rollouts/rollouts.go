// SPDX-License-Identifier: Apache-2.0

// Package rollouts tells what became of changes of PodDefaults: which revisions there are, what each changed,
// where a rollout is, and which pods carry which revision. It has no values of variables and annotations.
package rollouts

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/live/injection"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
)

// A Change is a revision of an object, as it was written.
type Change struct {
	// Namespace is empty for a ClusterPodDefault.
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	Number    int64     `json:"number"`
	Revision  string    `json:"revision"`
	Created   time.Time `json:"created"`
	// Stable is set for the revision that pods get which no step of a rollout includes, and RollsOut while another
	// revision is rolled out from it.
	Stable   bool `json:"stable,omitempty"`
	RollsOut bool `json:"rollsOut,omitempty"`
}

// Recent returns the revisions of a namespace, or of all namespaces and of ClusterPodDefaults if it is empty, the
// latest first. The error is forbidden without the right to list them.
func Recent(ctx context.Context, c *cluster.Cluster, namespace string) ([]Change, error) {
	out := []Change{}
	add := func(r *revision.Record) {
		if r.Problem != nil {
			return
		}
		out = append(out, Change{
			Namespace: r.Owner.Namespace, Name: r.OwnerName, Number: r.Number, Revision: revision.Short(r.Name), Created: r.Created.UTC(),
			Stable: r.Stable, RollsOut: r.Stable && r.Rollout != nil && r.Rollout.Revision != "" && r.Rollout.Revision != r.Name,
		})
	}
	client := revision.NewClient(c.Client.Discovery().RESTClient())
	var err error
	if namespace == "" {
		err = client.Each(ctx, add)
	} else {
		err = client.EachIn(ctx, namespace, add)
	}
	if err != nil && !apierrors.IsNotFound(err) { // a cluster with Kubeflow's definition alone has none
		return nil, err
	}
	slices.SortStableFunc(out, func(a, b Change) int { return b.Created.Compare(a.Created) })
	return out, nil
}

// A State is an object with its revisions, its rollout, and the pods that carry it.
type State struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Current is the revision of the spec, and Stable the one before while a rollout is in progress.
	Current string `json:"current"`
	Stable  string `json:"stable,omitempty"`
	// Step is the current step, counted from 1; 0 if no rollout is in progress or it has not begun.
	Step    int32 `json:"step,omitempty"`
	Paused  bool  `json:"paused,omitempty"`
	Aborted bool  `json:"aborted,omitempty"`
	// Failing is what the condition RolloutHealthy says if it is False.
	Failing   string     `json:"failing,omitempty"`
	Steps     []Step     `json:"steps,omitempty"`
	Revisions []Revision `json:"revisions"`
	// Pods are those that carry it. PodsHidden is set if the user may not list them.
	Pods       []Pod `json:"-"`
	PodsHidden bool  `json:"podsHidden,omitempty"`
}

// A Step of a rollout.
type Step struct {
	Percent int32  `json:"percent"`
	Text    string `json:"text,omitempty"` // selectors, and how long it lasts
}

// A Revision of an object.
type Revision struct {
	Number  int64     `json:"number"`
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	// Changes say what it changed in the revision before, without values.
	Changes []string `json:"changes,omitempty"`
	// Pods is the number of pods that carry it.
	Pods int `json:"pods"`
}

// Title is the number and the name.
func (r *Revision) Title() string { return fmt.Sprintf("%d (%s)", r.Number, r.Name) }

// A Pod carries a revision, empty if its marks do not identify one.
type Pod struct {
	Namespace, Name, Revision string
	Created                   time.Time
}

// InProgress reports whether a rollout is in progress.
func (s *State) InProgress() bool { return s.Stable != "" && s.Stable != s.Current }

// Title names the object.
func (s *State) Title() string {
	if s.Namespace == "" {
		return s.Kind + " " + s.Name
	}
	return s.Kind + " " + s.Namespace + "/" + s.Name
}

// Read reads the state of a PodDefault in the cluster's namespace, or of a ClusterPodDefault. Where its rollout is
// comes from verified revisions: what somebody writes into its status changes nothing but the message of
// RolloutHealthy.
func Read(ctx context.Context, c *cluster.Cluster, name string, ofCluster bool, notes io.Writer) (*State, error) {
	r, err := injection.ReadRevised(ctx, c, name, ofCluster)
	if err != nil {
		return nil, err
	}
	now := r.RolloutState()
	s := &State{
		Kind: kubeflowv1alpha1.PodDefaultKind, Namespace: r.Namespace, Name: name,
		Current: revision.Short(now.Revision), Stable: revision.Short(now.Stable), Step: int32(now.Step), // the schema limits it
		Aborted: now.Aborted(), Failing: now.Unhealthy,
	}
	if ofCluster {
		s.Kind = "ClusterPodDefault"
	}
	if rollout := r.Rollout(); rollout != nil {
		s.Paused, s.Steps = rollout.Paused, stepsOf(rollout)
	}
	for _, one := range r.Refused {
		manifest.Note(notes, "note: %s is ignored: %v", one, one.Problem)
	}
	err = s.carriers(ctx, c)
	if s.PodsHidden = apierrors.IsForbidden(err); err != nil && !s.PodsHidden {
		return nil, err
	}
	for i, one := range r.Revisions {
		shown := Revision{Number: one.Number, Name: revision.Short(one.Name), Created: one.Created.UTC()}
		if i+1 < len(r.Revisions) {
			shown.Changes = Changes(r.Revisions[i+1].Meaning, one.Meaning)
		}
		for _, p := range s.Pods {
			if p.Revision == shown.Name {
				shown.Pods++
			}
		}
		s.Revisions = append(s.Revisions, shown)
	}
	return s, nil
}

func stepsOf(rollout *kubeflowv1alpha1.Rollout) (steps []Step) {
	for _, step := range rollout.Steps {
		one := Step{Percent: 100}
		if step.Percent != nil {
			one.Percent = *step.Percent
		}
		var texts []string
		if step.NamespaceSelector != nil {
			texts = append(texts, "namespaces "+metav1.FormatLabelSelector(step.NamespaceSelector))
		}
		if step.PodSelector != nil {
			texts = append(texts, "pods "+metav1.FormatLabelSelector(step.PodSelector))
		}
		if step.HoldSeconds != nil {
			texts = append(texts, "for "+(time.Duration(*step.HoldSeconds)*time.Second).String())
		} else {
			texts = append(texts, "until promoted")
		}
		one.Text = strings.Join(texts, ", ")
		steps = append(steps, one)
	}
	return steps
}

// carriers reads the pods that carry the object and have not ended.
func (s *State) carriers(ctx context.Context, c *cluster.Cluster) error {
	mark := meta.Mark(s.Name)
	if s.Namespace == "" {
		mark = meta.ClusterMark(s.Name)
	}
	return c.EachMetadata(ctx, workload.Kinds()[0].Path(s.Namespace), "status.phase!=Succeeded,status.phase!=Failed", func(pod *metav1.ObjectMeta) {
		if pod.DeletionTimestamp != nil {
			return
		}
		for _, m := range meta.Marks(pod.Annotations) {
			if m.Annotation == mark {
				s.Pods = append(s.Pods, Pod{pod.Namespace, pod.Name, revision.Short(m.Revision), pod.CreationTimestamp.UTC()})
			}
		}
	})
}
