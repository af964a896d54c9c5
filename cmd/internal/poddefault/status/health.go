// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// defaultMaxFailedPercent is the default of spec.rollout.maxFailedPercent.
const defaultMaxFailedPercent = 10

// Reasons of the condition RolloutHealthy.
const (
	reasonFailing = "PodsFail"
	reasonRefused = "PodsRefused"
	reasonRunning = "PodsRun"
	reasonNoPods  = "NoPods"
)

// health looks at the pods that carry the current revision and that the present step
// includes. Pods of other revisions do not count, whatever their state, and neither do pods
// that only say that they carry this one.
func (r *roller) health(ctx context.Context, c *plan.Plan) (metav1.Condition, error) {
	pods, first := census{}, ""
	options := metav1.ListOptions{LabelSelector: c.Selector().String(), Limit: 500}
	for {
		page, err := r.clients.CoreV1().Pods(c.Namespace()).List(ctx, options)
		if err != nil {
			return metav1.Condition{}, fmt.Errorf("list pods for the condition %s: %w", kubeflowv1alpha1.ConditionRolloutHealthy, err)
		}
		for i := range page.Items {
			pod := &page.Items[i]
			if mark, _ := c.MarkIn(pod.Annotations); mark.Revision != c.Revision() || pod.DeletionTimestamp != nil {
				continue
			}
			if included, err := match.Includes(ctx, r.watcher, c, &pod.ObjectMeta); err != nil {
				return metav1.Condition{}, fmt.Errorf("which pods the step of %s includes: %w", c, err)
			} else if !included {
				continue
			}
			why := failing(pod)
			pods.add(pod.Namespace, why != "")
			if why != "" && first == "" {
				first = pod.Namespace + "/" + pod.Name + ": " + why
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	failed, all := pods.total()
	switch {
	case all == 0:
		return metav1.Condition{Type: kubeflowv1alpha1.ConditionRolloutHealthy, Status: metav1.ConditionUnknown, Reason: reasonNoPods}, nil
	case pods.tooMany(c.Rolls()):
		return unhealthy(reasonFailing, "%d of %d pods with revision %s (%d %%) fail, for example %s. Change or abort it: kubectl sallyport rollout abort",
			failed, all, c.Revision(), percentOf(failed, all), first), nil
	}
	return metav1.Condition{Type: kubeflowv1alpha1.ConditionRolloutHealthy, Status: metav1.ConditionTrue, Reason: reasonRunning}, nil
}

// manyRestarts is how often a container has failed before a pod counts between two crashes,
// while it runs.
const manyRestarts = 3

// waitingReasons are reasons for which the kubelet does not start a container, all of
// which need someone's help.
var waitingReasons = []string{
	"CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName",
	"CreateContainerConfigError", "CreateContainerError", "RunContainerError",
}

// failing returns why a pod cannot run, or "".
func failing(pod *corev1.Pod) string {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			s := &statuses[i]
			switch waiting, last := s.State.Waiting, s.LastTerminationState.Terminated; {
			case waiting != nil && slices.Contains(waitingReasons, waiting.Reason):
				return "container " + s.Name + ": " + waiting.Reason
			case s.RestartCount >= manyRestarts && !s.Ready && last != nil && last.ExitCode != 0:
				return fmt.Sprintf("container %s: %d restarts", s.Name, s.RestartCount)
			}
		}
	}
	return ""
}
