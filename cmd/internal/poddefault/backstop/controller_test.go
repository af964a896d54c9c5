// SPDX-License-Identifier: Apache-2.0

package backstop

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/config/crd"
	"github.com/sallyport-io/sallyport/internal/store"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/lab"
)

// patience is the timeout of a test.
const patience = 4 * time.Minute

// always is a permanent leader.
type always struct{}

func (always) Leading() bool            { return true }
func (always) Changed() <-chan struct{} { return nil }

// testCluster is an API server with a controller that only has the rights of
// PolicyRules, next to the webhook with its own.
type testCluster struct {
	kubernetes.Interface
	controller          *Controller
	watcher             *source.Watcher
	podDefaults, others rest.Interface
	changed             chan struct{}
}

func start(t *testing.T) *testCluster {
	t.Helper()
	crds, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	config := sallyporttest.StartAPIServer(t, sallyporttest.WithCRDs(crds...))
	c := &testCluster{changed: make(chan struct{}, 1)}
	if c.Interface, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	c.allow(t)
	if c.podDefaults, err = store.Client(config, kubeflowv1alpha1.GroupVersion, kubeflowv1alpha1.AddToScheme); err != nil {
		t.Fatal(err)
	}
	if c.others, err = store.Client(config, sallyportv1alpha1.GroupVersion, sallyportv1alpha1.AddToScheme); err != nil {
		t.Fatal(err)
	}
	limited := rest.CopyConfig(config)
	limited.Impersonate = rest.ImpersonationConfig{UserName: "index-controller", Groups: []string{"system:authenticated"}}
	log := slog.New(slog.DiscardHandler)
	if c.watcher, err = source.Watch(store.NewFactory(config, log), source.WatchOptions{Recorded: true}, log, func() {}); err != nil {
		t.Fatal(err)
	}
	c.controller, err = NewController(limited, Options{
		Watcher: c.watcher, Leader: always{}, Logger: log, Metrics: prometheus.NewRegistry(),
		Namespaces: func() (labels.Selector, error) { return labels.Parse("team") },
		Changed:    func() { c.changed <- struct{}{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *testCluster) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done, watching := make(chan error, 1), make(chan error, 1)
	go func() { watching <- c.watcher.Run(ctx) }()
	go func() { done <- errors.Join(c.controller.Run(ctx), <-watching) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// allow grants the controller's user its rights.
func (c *testCluster) allow(t *testing.T) {
	t.Helper()
	_, err := c.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "index-controller"}, Rules: PolicyRules(),
	}, metav1.CreateOptions{})
	if err == nil {
		_, err = c.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "index-controller"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "index-controller"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "index-controller"}},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (c *testCluster) namespace(t *testing.T, name string, set map[string]string) {
	t.Helper()
	if _, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: set}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (c *testCluster) podDefault(t *testing.T, namespace, name, key string) {
	t.Helper()
	pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	pd.APIVersion, pd.Kind = kubeflowv1alpha1.GroupVersion.String(), kubeflowv1alpha1.PodDefaultKind
	pd.Spec.Selector.MatchLabels = map[string]string{key: "true"}
	if err := c.podDefaults.Post().Namespace(namespace).Resource(kubeflowv1alpha1.PodDefaultResource).Body(pd).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
}

// seen is the visible part of an index.
type seen struct{ objects, omitted, rest string }

// await waits until the index of a namespace is as desired.
func (c *testCluster) await(t *testing.T, namespace, what string, want seen) {
	t.Helper()
	lab.Eventually(t.Context(), t, patience, what, func(ctx context.Context) (bool, error) {
		index, err := c.CoreV1().PodTemplates(namespace).Get(ctx, TemplateName, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			err = lab.Final(err)
		}
		if err != nil {
			return false, err
		}
		rest, _, _ := strings.Cut(strings.Join(index.Template.Spec.Containers[0].Args, ","), "#") // the version of the one there is
		got := seen{index.Annotations[ObjectsAnnotation], index.Annotations[OmittedAnnotation], rest}
		if got != want {
			return false, fmt.Errorf("it is %+v", got)
		}
		return true, nil
	})
}

var times = flag.Int("times", 1, "how many times 200 objects are created in a row")

// TestIndexesOnARealAPIServer follows the indexes of all namespaces of a dedicated API
// server.
func TestIndexesOnARealAPIServer(t *testing.T) {
	c := start(t)
	c.namespace(t, "team-a", map[string]string{"team": "a"})
	c.namespace(t, "team-b", map[string]string{"team": "b"})
	c.namespace(t, "nobody", nil)
	if err := c.controller.Ready(); err == nil {
		t.Error("ready before it runs")
	}
	c.run(t)
	<-c.changed
	if err := c.controller.Ready(); err != nil {
		t.Errorf("it says that it has become ready, and is not: %v", err)
	}
	c.await(t, "team-b", "an empty index", seen{"0", "0", ""})

	// Many objects in a row cause few writes.
	many := 200 * *times
	before := testutil.ToFloat64(c.controller.metrics.writes.WithLabelValues("success"))
	for i := range many {
		c.podDefault(t, "team-a", fmt.Sprintf("pd-%04d", i), fmt.Sprintf("key-%d", i))
	}
	c.await(t, "team-a", "all objects", seen{fmt.Sprint(many), "0", ""})
	writes := testutil.ToFloat64(c.controller.metrics.writes.WithLabelValues("success")) - before
	t.Logf("%v writes for %d objects", writes, many)
	if writes > float64(many)/4 {
		t.Errorf("%v writes for %d objects", writes, many)
	}

	everywhere := &sallyportv1alpha1.ClusterPodDefault{ObjectMeta: metav1.ObjectMeta{Name: "everywhere"}}
	everywhere.APIVersion, everywhere.Kind = sallyportv1alpha1.GroupVersion.String(), sallyportv1alpha1.ClusterPodDefaultKind
	everywhere.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "b"}}
	if err := c.others.Post().Resource(sallyportv1alpha1.ClusterPodDefaultResource).Body(everywhere).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	listed := seen{"1", "0", "cluster/everywhere"}
	c.await(t, "team-b", "the ClusterPodDefault", listed)

	// Drift is corrected.
	templates := c.CoreV1().PodTemplates("team-b")
	if err := templates.Delete(t.Context(), TemplateName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.await(t, "team-b", "the index that was deleted", listed)
	spoil := []byte(`[{"op": "replace", "path": "/template/spec/containers/0/args", "value": ["other"]}]`)
	if _, err := templates.Patch(t.Context(), TemplateName, types.JSONPatchType, spoil, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	c.await(t, "team-b", "the index that was changed", listed)

	// A new namespace, and one that becomes selected.
	c.namespace(t, "team-c", map[string]string{"team": "b"})
	c.await(t, "team-c", "the index of a new namespace", listed)
	nobody, err := c.CoreV1().Namespaces().Get(t.Context(), "nobody", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	nobody.Labels["team"] = "a"
	if _, err := c.CoreV1().Namespaces().Update(t.Context(), nobody, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.await(t, "nobody", "the index of a namespace that was relabelled", seen{"0", "0", ""})

	// A deleted object leaves the index.
	gone := c.podDefaults.Delete().Namespace("team-a").Resource(kubeflowv1alpha1.PodDefaultResource)
	if err := gone.Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	c.await(t, "team-a", "an empty index", seen{"0", "0", ""})
	if failures := testutil.ToFloat64(c.controller.metrics.writes.WithLabelValues("failure")); failures > 0 {
		t.Errorf("%v writes have failed", failures)
	}
}
