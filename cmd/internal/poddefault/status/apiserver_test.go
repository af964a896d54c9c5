// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
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

// running is a controller that only has the rights of PolicyRules, next to the webhook
// with its own.
type running struct {
	*Controller
	leader *lab.Leader
}

func run(t *testing.T, config *rest.Config, leading bool) *running {
	t.Helper()
	limited := rest.CopyConfig(config)
	limited.Impersonate = rest.ImpersonationConfig{UserName: "status-controller", Groups: []string{"system:authenticated"}}
	leader := lab.NewLeader(leading)
	log := slog.New(slog.DiscardHandler)
	watcher, err := source.Watch(store.NewFactory(config, log), source.WatchOptions{Recorded: true}, log, func() {})
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(limited, Options{Watcher: watcher, Leader: leader, Logger: log, Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
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
	return &running{c, leader}
}

// observer watches PodDefaults and counts the changes of each.
type observer struct {
	mu      sync.Mutex
	latest  map[string]*kubeflowv1alpha1.PodDefault
	changes map[string]int
	wake    chan struct{}
}

func observe(t *testing.T, client rest.Interface) *observer {
	t.Helper()
	o := &observer{latest: map[string]*kubeflowv1alpha1.PodDefault{}, changes: map[string]int{}, wake: make(chan struct{}, 1)}
	from, err := client.Get().Resource(kubeflowv1alpha1.PodDefaultResource).
		VersionedParams(&metav1.ListOptions{ResourceVersion: "0", Watch: true}, metav1.ParameterCodec).Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(from.Stop)
	go func() {
		for event := range from.ResultChan() {
			pd, ok := event.Object.(*kubeflowv1alpha1.PodDefault)
			if !ok {
				continue
			}
			o.mu.Lock()
			o.latest[pd.Name] = pd
			if event.Type == watch.Modified {
				o.changes[pd.Name]++
			}
			o.mu.Unlock()
			select {
			case o.wake <- struct{}{}:
			default:
			}
		}
	}()
	return o
}

// await waits until the condition holds for the observed objects.
func (o *observer) await(t *testing.T, what string, holds func(latest map[string]*kubeflowv1alpha1.PodDefault) bool) {
	t.Helper()
	timeout := time.After(patience)
	for {
		o.mu.Lock()
		ok := holds(o.latest)
		o.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-o.wake:
		case <-timeout:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func (o *observer) most() (name string, times int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for n, c := range o.changes {
		if c > times {
			name, times = n, c
		}
	}
	return name, times
}

// is reports whether a condition has that status for the current object.
func is(pd *kubeflowv1alpha1.PodDefault, condition string, status metav1.ConditionStatus) bool {
	if pd == nil || pd.Status.ObservedGeneration != pd.Generation {
		return false
	}
	c := meta.FindStatusCondition(pd.Status.Conditions, condition)
	return c != nil && c.Status == status && c.ObservedGeneration == pd.Generation
}

func create(t *testing.T, client rest.Interface, pd *kubeflowv1alpha1.PodDefault) {
	t.Helper()
	if err := client.Post().Namespace(pd.Namespace).Resource(kubeflowv1alpha1.PodDefaultResource).Body(pd).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
}

func onServer(name, label, value string) *kubeflowv1alpha1.PodDefault {
	pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}, Spec: envSpec(label, value)}
	pd.APIVersion, pd.Kind = kubeflowv1alpha1.GroupVersion.String(), kubeflowv1alpha1.PodDefaultKind
	return pd
}

// times multiplies the numbers of objects in some tests.
var times = flag.Int("times", 1, "how many times 200 PodDefaults get their statuses at once, and 2,000 conflict")

// TestControllerOnARealAPIServer runs controllers one after the other. The API server is
// dedicated, because a controller writes the statuses of all PodDefaults.
func TestControllerOnARealAPIServer(t *testing.T) {
	crds, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	config := sallyporttest.StartAPIServer(t, sallyporttest.WithCRDs(crds...))
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	allow(t, clients)
	t.Run("a definition with defaults starts no rollout", func(t *testing.T) { testUpgrade(t, config, clients) })
	t.Run("a replica that does not lead stops a rollout whose revision it refuses pods for", func(t *testing.T) {
		testRefusals(t, startRolling(t, config, "refused"))
	})
	t.Run("a rollout in several namespaces", func(t *testing.T) { testClusterRollout(t, config, clients) })
	t.Run("a rollout", func(t *testing.T) { testRollout(t, startRolling(t, config, "staged")) })
	t.Run("statuses", func(t *testing.T) { testStatuses(t, config, clients) })
}

// testStatuses follows statuses: of many objects written at once, of a corrected one, and
// across a change of the leader.
func testStatuses(t *testing.T, config *rest.Config, clients kubernetes.Interface) {
	client, err := store.Client(config, kubeflowv1alpha1.GroupVersion, kubeflowv1alpha1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	seen := observe(t, client)
	first := run(t, config, true)

	// Every hundredth conflicts with the next one. The others set distinct variables.
	many := 200 * *times
	name := func(i int) string { return fmt.Sprintf("number-%04d", i) }
	numbers := make(chan int)
	began := time.Now()
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for i := range numbers {
				pd := onServer(name(i), "select-"+name(i), "1")
				if pd.Spec.Env[0].Name = fmt.Sprintf("NUMBER_%d", i); i%100 == 1 {
					pd.Spec.Env[0] = corev1.EnvVar{Name: fmt.Sprintf("NUMBER_%d", i-1), Value: "2"}
				}
				if err := client.Post().Namespace(pd.Namespace).Resource(kubeflowv1alpha1.PodDefaultResource).Body(pd).Do(t.Context()).Error(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range many {
		numbers <- i
	}
	close(numbers)
	writers.Wait()
	seen.await(t, "every status", func(latest map[string]*kubeflowv1alpha1.PodDefault) bool {
		for i := range many {
			status := metav1.ConditionFalse
			if i%100 < 2 {
				status = metav1.ConditionTrue
			}
			if pd := latest[name(i)]; !is(pd, kubeflowv1alpha1.ConditionAccepted, metav1.ConditionTrue) ||
				!is(pd, kubeflowv1alpha1.ConditionConflicting, status) || !is(pd, kubeflowv1alpha1.ConditionUISelectable, metav1.ConditionTrue) {
				return false
			}
		}
		return true
	})
	if name, times := seen.most(); times >= 3 {
		t.Errorf("the status of %s was written %d times", name, times)
	}
	t.Logf("%s from the first object to the last status, %v writes for %d objects", time.Since(began).Round(time.Millisecond), testutil.ToFloat64(first.metrics.writes.WithLabelValues("success")), many)
	if failed := testutil.ToFloat64(first.metrics.writes.WithLabelValues("failure")); failed > 0 {
		t.Errorf("%v writes have failed", failed)
	}

	// The message of a conflict names the other object.
	seen.mu.Lock()
	message := meta.FindStatusCondition(seen.latest[name(100)].Status.Conditions, kubeflowv1alpha1.ConditionConflicting).Message
	seen.mu.Unlock()
	if !strings.Contains(message, "PodDefaults "+name(100)+" and "+name(101)+" both set env NUMBER_100;") {
		t.Errorf("message: %s", message)
	}
	awaitEvent(t, clients, name(100), "Conflict", " and "+name(101)+" both set")

	// Resolve the conflict.
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"env": []corev1.EnvVar{{Name: "NUMBER_100", Value: "1"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Patch(types.MergePatchType).Namespace(metav1.NamespaceDefault).Resource(kubeflowv1alpha1.PodDefaultResource).
		Name(name(101)).Body(patch).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	seen.await(t, "the end of a conflict", func(latest map[string]*kubeflowv1alpha1.PodDefault) bool {
		return is(latest[name(100)], kubeflowv1alpha1.ConditionConflicting, metav1.ConditionFalse) &&
			is(latest[name(101)], kubeflowv1alpha1.ConditionConflicting, metav1.ConditionFalse)
	})
	awaitEvent(t, clients, name(100), "ConflictResolved", "")

	// An invalid object that predates the webhook.
	bad := onServer("bad", "bad", "1")
	bad.Spec.HostAliases = []corev1.HostAlias{{IP: "localhost"}} // the schema accepts it
	create(t, client, bad)
	seen.await(t, "the object that can never work", func(latest map[string]*kubeflowv1alpha1.PodDefault) bool {
		return is(latest["bad"], kubeflowv1alpha1.ConditionAccepted, metav1.ConditionFalse)
	})
	awaitEvent(t, clients, "bad", "Invalid", "spec.hostAliases")

	// Another replica becomes the leader and writes only what is new.
	first.leader.Lead(false)
	second := run(t, config, false)
	create(t, client, onServer("late", "late", "1"))
	cluster, err := store.Client(config, sallyportv1alpha1.GroupVersion, sallyportv1alpha1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	everywhere := &sallyportv1alpha1.ClusterPodDefault{ObjectMeta: metav1.ObjectMeta{Name: "everywhere"}}
	everywhere.APIVersion, everywhere.Kind = sallyportv1alpha1.GroupVersion.String(), sallyportv1alpha1.ClusterPodDefaultKind
	everywhere.Spec.PodDefaultSpec = envSpec("late", "2")
	if err := cluster.Post().Resource(sallyportv1alpha1.ClusterPodDefaultResource).Body(everywhere).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	second.leader.Lead(true)
	seen.await(t, "the new object", func(latest map[string]*kubeflowv1alpha1.PodDefault) bool {
		return is(latest["late"], kubeflowv1alpha1.ConditionConflicting, metav1.ConditionTrue)
	})
	var written sallyportv1alpha1.ClusterPodDefault
	lab.Eventually(t.Context(), t, patience, "the status of the ClusterPodDefault", func(ctx context.Context) (bool, error) {
		err := cluster.Get().Resource(sallyportv1alpha1.ClusterPodDefaultResource).Name("everywhere").Do(ctx).Into(&written)
		return meta.FindStatusCondition(written.Status.Conditions, kubeflowv1alpha1.ConditionConflicting) != nil, err
	})
	if c := meta.FindStatusCondition(written.Status.Conditions, kubeflowv1alpha1.ConditionConflicting); c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "PodDefault default/late") {
		t.Errorf("of the ClusterPodDefault: %+v", c)
	}
	if writes := testutil.ToFloat64(second.metrics.writes.WithLabelValues("success")); writes > 4 {
		t.Errorf("a replica that takes over writes %v statuses", writes)
	}
}

// allow grants the controller's user its rights.
func allow(t *testing.T, clients kubernetes.Interface) {
	t.Helper()
	_, err := clients.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "status-controller"}, Rules: PolicyRules(),
	}, metav1.CreateOptions{})
	if err == nil {
		_, err = clients.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "status-controller"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "status-controller"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "status-controller"}},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// awaitEvent waits for an event about a PodDefault.
func awaitEvent(t *testing.T, clients kubernetes.Interface, name, reason, text string) {
	t.Helper()
	lab.Eventually(t.Context(), t, patience, "the event "+reason+" of "+name, func(ctx context.Context) (bool, error) {
		from, err := clients.EventsV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: "regarding.name=" + name})
		return err == nil && slices.ContainsFunc(from.Items, func(event eventsv1.Event) bool {
			return event.Reason == reason && strings.Contains(event.Note, text)
		}), err
	})
}
