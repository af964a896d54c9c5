// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/config/crd"
	"github.com/sallyport-io/sallyport/internal/store"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/lab"
)

// without excludes the pod of that name.
type without string

func (name without) Excludes(pod *corev1.Pod) bool { return pod.Name == string(name) }

// TestControllerOnARealAPIServer runs the controller with the rights of PolicyRules, and
// before that without. There is no webhook: the test writes the marks.
func TestControllerOnARealAPIServer(t *testing.T) {
	t.Parallel()
	crds, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	config := sallyporttest.StartAPIServer(t, sallyporttest.WithCRDs(crds...))
	clients := kubernetes.NewForConfigOrDie(config)
	limited := rest.CopyConfig(config)
	limited.Impersonate = rest.ImpersonationConfig{UserName: "drift-controller", Groups: []string{"system:authenticated"}}
	log := &lab.Log{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	watcher, err := source.Watch(store.NewFactory(config, logger), source.WatchOptions{Exempts: true, Recorded: true}, logger, func() {})
	if err != nil {
		t.Fatal(err)
	}
	var conditions atomic.Pointer[Conditions]
	conditions.Store(new(Conditions))
	leader, board, registry := lab.NewLeader(true), &Board{}, prometheus.NewRegistry()
	c, err := NewController(limited, Options{Watcher: watcher, Leader: leader, Logger: logger, Metrics: registry, Board: board,
		Asked: func() (Asked, error) {
			return Asked{Namespaces: labels.Everything(), Pods: labels.Everything(), Excludes: *conditions.Load()}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	c.pace = pace{quiet: 10 * time.Millisecond, again: 50 * time.Millisecond, look: 50 * time.Millisecond, late: 10 * time.Millisecond}
	ctx, cancel := context.WithCancel(t.Context())
	done, watching := make(chan error, 1), make(chan error, 1)
	go func() { watching <- watcher.Run(ctx) }()
	go func() { done <- errors.Join(c.Run(ctx), <-watching) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	until := func(what string, holds func() bool) {
		t.Helper()
		lab.Eventually(t.Context(), t, 2*time.Minute, what, func(context.Context) (bool, error) { return holds(), nil })
	}

	until("the log to say that pods may not be read", func() bool { return strings.Contains(log.String(), "may this server list them?") })
	name := types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: "x"}
	if board.Pods(name) != nil {
		t.Error("there are counts without the right to read pods")
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "drift"}, Rules: PolicyRules()}
	if _, err := clients.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := clients.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "drift"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "drift"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "drift-controller"}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	pd.APIVersion, pd.Kind = kubeflowv1alpha1.GroupVersion.String(), kubeflowv1alpha1.PodDefaultKind
	pd.Spec.Selector.MatchLabels, pd.Spec.Env = map[string]string{"use": "x"}, []corev1.EnvVar{{Name: "A", Value: "1"}}
	podDefaults, err := store.Client(config, kubeflowv1alpha1.GroupVersion, kubeflowv1alpha1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	if err := podDefaults.Post().Namespace(pd.Namespace).Resource(kubeflowv1alpha1.PodDefaultResource).Body(pd).Do(t.Context()).Into(pd); err != nil {
		t.Fatal(err)
	}
	if _, err := clients.CoreV1().ServiceAccounts(name.Namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods := clients.CoreV1().Pods(name.Namespace)
	n := 0
	create := func(label, value, revision string) *corev1.Pod {
		t.Helper()
		n++
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pod-", n), Labels: map[string]string{"use": label}, Annotations: map[string]string{}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "busybox"}}}}
		if value != "" {
			pod.Annotations[meta.Mark("x")] = value
			pod.Annotations[meta.RevisionsAnnotation] = "x@" + revision
		}
		pod, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return pod
	}
	is := func(what string, want kubeflowv1alpha1.PodCounts) {
		t.Helper()
		until(what, func() bool { got := board.Pods(name); return got != nil && *got == want })
	}
	current := plan.Compile(pd).Revision()
	ended := create("x", pd.ResourceVersion, current)
	create("x", pd.ResourceVersion, current)
	create("x", "1", strings.Repeat("0", plan.RevisionSize))
	create("x", "1", "")
	missing := create("x", "", "")
	create("y", pd.ResourceVersion, current)
	create("y", "", "")
	all := kubeflowv1alpha1.PodCounts{Current: 2, Outdated: 1, Unknown: 1, Missed: 1, Surplus: 1}
	is("each pod to be counted", all)
	exemptions, err := store.Client(config, sallyportv1alpha1.GroupVersion, sallyportv1alpha1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	exemptFor := func(d time.Duration) {
		t.Helper()
		e := fmt.Appendf(nil, `{"apiVersion":"sallyport.io/v1alpha1","kind":"Exemption","metadata":{"name":"e"},"spec":{"until":%q,"podDefaults":["x"],"workloads":["Pod/%s"],"reason":"r"}}`,
			time.Now().Add(d).Format(time.RFC3339), missing.Name)
		if err := exemptions.Patch(types.ApplyPatchType).Namespace(name.Namespace).Resource(sallyportv1alpha1.ExemptionResource).Name("e").
			Param("fieldManager", "test").Body(e).Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	exemptFor(time.Hour)
	is("a pod to be exempt", kubeflowv1alpha1.PodCounts{Current: 2, Outdated: 1, Unknown: 1, Surplus: 1, Exempt: 1})
	of := types.NamespacedName{Namespace: name.Namespace, Name: "e"}
	if got := board.Exempted(of); got == nil || *got != 1 {
		t.Errorf("pods that use the exemption: %v", got)
	}
	exemptFor(2 * time.Second)
	is("the exemption to end by itself", all)
	if got := board.Exempted(of); got == nil || *got != 0 {
		t.Errorf("pods that use the exemption after its end: %v", got)
	}
	if got := testutil.CollectAndCount(collector{board}, "sallyport_poddefault_pods"); got != 6 { // five states, and undecided
		t.Errorf("%d series", got)
	}

	ended.Status.Phase = corev1.PodSucceeded
	if _, err := pods.UpdateStatus(t.Context(), ended, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := pods.Delete(t.Context(), missing.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		t.Fatal(err)
	}
	is("pods that ended to count no more", kubeflowv1alpha1.PodCounts{Current: 1, Outdated: 1, Unknown: 1, Surplus: 1})

	conditions.Store(new(Conditions(without("pod-8"))))
	passed := create("x", "", "")
	is("a pod that a match condition excludes not to be missed", kubeflowv1alpha1.PodCounts{Current: 1, Outdated: 1, Unknown: 1, Surplus: 1})
	conditions.Store(new(Conditions(without("pod-4"))))
	is("pods to be read again when the conditions change", kubeflowv1alpha1.PodCounts{Current: 1, Outdated: 1, Missed: 1, Surplus: 2})
	conditions.Store(new(Conditions))
	is("pods to be read again when there are no conditions", kubeflowv1alpha1.PodCounts{Current: 1, Outdated: 1, Unknown: 1, Missed: 1, Surplus: 1})
	if err := pods.Delete(t.Context(), passed.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		t.Fatal(err)
	}
	leader.Lead(false)
	until("the counts to be another replica's", func() bool { return board.Pods(name) == nil && testutil.CollectAndCount(collector{board}) == 0 })
	create("x", "", "")
	leader.Lead(true)
	is("the counts of a leader that is back", kubeflowv1alpha1.PodCounts{Current: 1, Outdated: 1, Unknown: 1, Missed: 1, Surplus: 1})

	if err := podDefaults.Delete().Namespace(pd.Namespace).Resource(kubeflowv1alpha1.PodDefaultResource).Name(pd.Name).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	until("all to be surplus", func() bool {
		r := board.Report()
		return r != nil && r.Of("PodDefault default/x").Pods[Surplus] == 4
	})
}

func TestControllersNeedTheirOptions(t *testing.T) {
	if _, err := NewController(&rest.Config{}, Options{}); err == nil || !strings.Contains(err.Error(), "a watcher") {
		t.Errorf("got %v", err)
	}
}
