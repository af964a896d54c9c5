// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// testRestartFails restarts a workload while a quota keeps its controller from creating pods, and
// again when the quota is gone and the events of that are still there. New pods are available only
// after a time in which a restart would give up.
func testRestartFails(t *testing.T, e *env, of, kind string) {
	name := "restart-" + strings.ToLower(kind)
	e.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"e2e": of}}})
	pods := 2
	const ready = 8 // seconds
	switch kind {
	case "Deployment":
		d := deployment(name, "web", "1", "")
		d.Spec.MinReadySeconds = ready
		d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
		e.create(t, d)
	case "StatefulSet":
		s := statefulSet(name, "web", "")
		s.Spec.MinReadySeconds = ready
		e.create(t, s)
	default:
		pods = 1
		tolerant := template("web", "1", "")
		tolerant.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} // no controller untaints the node
		e.create(t, &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "web"}, Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: tolerant, MinReadySeconds: ready,
		}})
	}
	run := func(injected int) {
		t.Helper()
		eventuallyWithin(t, soon, "the pods to run", func(ctx context.Context) (bool, error) {
			var list corev1.PodList
			err := e.client.List(ctx, &list, client.InNamespace(name), client.MatchingLabels{"app": "web"})
			running, with := 0, 0
			for _, pod := range list.Items {
				if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
					running, with = running+1, with+len(pod.Spec.Containers[0].Env)
				}
			}
			return running == pods && with == injected, err
		})
	}
	run(0)
	e.createSoon(t, envPodDefault(name, "env"), simplePod(name, "probe"), meta.Mark("env"))
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}}
	e.create(t, quota)
	quota.Status.Hard, quota.Status.Used = quota.Spec.Hard, corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	if err := e.client.Status().Update(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the quota to be in force", func(ctx context.Context) (bool, error) {
		return apierrors.IsForbidden(e.client.Create(ctx, simplePod(name, "probe"), client.DryRunAll)), nil
	})

	p := newPlugin(t, e)
	p.says(t, 1, []string{"rollout", "restart", "-n", name, "--yes"}, "", name+" "+strings.ToLower(kind)+"/web: not restarted: its new pods would be refused by API server: ", "exceeded quota: none", "restart it anyway with --force")
	p.says(t, 1, []string{"rollout", "restart", "-n", name, "--yes", "--force"}, "", name+" "+strings.ToLower(kind)+"/web restarted", "its pods cannot be created: ", "exceeded quota: none", "stopped after 0 of 1 workload")
	if err := e.client.Delete(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	run(pods)
	pd := envPodDefault(name, "env")
	e.change(t, pd, func() { pd.Spec.Env[0].Value = "2" })
	eventually(t, "the change to apply", func(ctx context.Context) (bool, error) {
		probe := simplePod(name, "probe")
		err := e.client.Create(ctx, probe, client.DryRunAll)
		return err == nil && probe.Spec.Containers[0].Env[0].Value == "2", err
	})
	p.says(t, 0, []string{"rollout", "restart", "-n", name, "--yes"}, "", "1 of 1 workload restarted")
	run(pods)
	if got := p.drift(t, 0, "-n", name); len(got.Workloads) > 0 {
		t.Errorf("after the restart: %+v", got.Workloads)
	}
}
