// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
)

// Cases the limits refer to, which are names of PodDefaults, too.
const (
	rolloutNone       = "rollout-none"
	rolloutInProgress = "rollout-in-progress"
)

// rolloutLabel says which of them selects a pod.
const rolloutLabel = "bench-rollout"

// rolloutStage has a pod whose PodDefault is being rolled out beside one whose is not, so
// that both are measured in turns.
func rolloutStage(few int) stage {
	row := func(id, name string) benchCase {
		return benchCase{id: id, name: name, review: "pod for " + id, path: podDefaultPath, adds: []string{id}}
	}
	return stage{
		part:        partPodDefaults,
		podDefaults: few,
		servers:     []string{floorName, sallyportName},
		prepare:     createRollout,
		cases: []benchCase{
			row(rolloutNone, "notebook pod, 1 matches, no rollout"),
			row(rolloutInProgress, "notebook pod, 1 matches, in step 1 of a rollout"),
		},
	}
}

// createRollout creates the PodDefaults of the stage. They are copies of the first of the
// namespace. Both revisions of the one that is rolled out add the same, so that what has to
// be injected does not depend on the draw.
func createRollout(ctx context.Context, s *site, _ schedule, progress progress) error {
	progress.sayf("creating a PodDefault that is rolled out, and one that is not")
	typical, err := typicalPodDefaults()
	if err != nil {
		return err
	}
	for _, name := range []string{rolloutNone, rolloutInProgress} {
		pd := &v1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: *typical[0].Spec.DeepCopy()}
		pd.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{rolloutLabel: name}}
		stable := pd.Spec.DeepCopy()
		stable.Priority++
		if name == rolloutInProgress {
			pd.Spec.Rollout = &v1alpha1.Rollout{Steps: []v1alpha1.RolloutStep{{Percent: new(int32(50))}, {}}}
		}
		if err := s.cp.objects.Create(ctx, pd); apierrors.IsAlreadyExists(err) {
			continue
		} else if err != nil {
			return fmt.Errorf("creating PodDefault %s: %w", name, err)
		}
		if name == rolloutNone {
			continue
		}
		owner := &metav1.OwnerReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.PodDefaultKind, Name: name, UID: pd.UID, Controller: new(true),
		}
		recorded := revision.New(owner, namespace, plan.Meaning(stable), 1)
		recorded.Labels[revision.StableLabel] = "true"
		recorded.Rollout = &sallyportv1alpha1.RevisionRollout{
			Revision: plan.RevisionOf(plan.Meaning(&pd.Spec)), Step: 1, StepStartTime: new(metav1.Now()),
		}
		if err := s.cp.objects.Create(ctx, recorded); err != nil {
			return fmt.Errorf("recording the stable revision of PodDefault %s: %w", name, err)
		}
	}
	return nil
}
