// SPDX-License-Identifier: Apache-2.0

package backstop

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/internal/store"
	"github.com/sallyport-io/sallyport/internal/store/control"
)

func compiled(name, uid, label string) *plan.Plan {
	pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, UID: types.UID(uid)}}
	pd.Spec.Selector.MatchLabels = map[string]string{label: "true"}
	return plan.Compile(pd)
}

// TestNamespacesAreReconciledWhenTheirIndexIsOutdated checks which namespaces are
// reconciled after which change, and how soon.
func TestNamespacesAreReconciledWhenTheirIndexIsOutdated(t *testing.T) {
	audit := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "x", UID: "1"}}
	audit.Spec.Selector.MatchLabels, audit.Spec.Mode = map[string]string{"p": "true"}, kubeflowv1alpha1.ModeAudit
	everywhere := &sallyportv1alpha1.ClusterPodDefault{ObjectMeta: metav1.ObjectMeta{Name: "everywhere", UID: "2"}}
	soon, all := defaultPace.quiet, []string{"team-a", "team-b"}
	for name, test := range map[string]struct {
		do    func(*source.Watcher)
		after time.Duration
		want  []string
	}{
		"what is there when it begins":  {func(*source.Watcher) {}, 0, all},
		"one that injects more waits":   {func(w *source.Watcher) { w.PodDefaults.Set(compiled("y", "9", "p")) }, soon, []string{"team-a"}},
		"one that selects other pods":   {func(w *source.Watcher) { w.PodDefaults.Set(compiled("x", "1", "q")) }, 0, []string{"team-a"}},
		"one that injects nothing more": {func(w *source.Watcher) { w.PodDefaults.Set(plan.Compile(audit)) }, 0, []string{"team-a"}},
		"one that is deleted":           {func(w *source.Watcher) { w.PodDefaults.Replace(nil) }, 0, []string{"team-a"}},
		"one whose status was written":  {func(w *source.Watcher) { w.PodDefaults.Set(compiled("x", "1", "p")) }, 0, nil},
		"one of the cluster":            {func(w *source.Watcher) { w.ClusterPodDefaults.Set(plan.CompileCluster(everywhere)) }, soon, all},
		"a namespace that is relabelled": {func(w *source.Watcher) {
			w.Namespaces.Set(&store.Namespace{Name: "team-b", Labels: labels.Set{"team": "b"}})
		}, 0, []string{"team-b"}},
		"a namespace that goes":    {func(w *source.Watcher) { w.Namespaces.Set(&store.Namespace{Name: "team-b", Terminating: true}) }, 0, nil},
		"a namespace that is gone": {func(w *source.Watcher) { w.Namespaces.Delete(types.NamespacedName{Name: "team-b"}) }, 0, nil},
		"a namespace that was going, and is listed": {func(w *source.Watcher) {
			w.Namespaces.Set(&store.Namespace{Name: "team-c", Terminating: true})
		}, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := slog.New(slog.DiscardHandler)
				w, err := source.Watch(store.NewFactory(&rest.Config{}, log), source.WatchOptions{Recorded: true}, log, func() {})
				if err != nil {
					t.Fatal(err)
				}
				w.PodDefaults.Replace([]*plan.Plan{compiled("x", "1", "p")})
				w.ClusterPodDefaults.Replace(nil)
				w.Namespaces.Replace([]*store.Namespace{{Name: "team-a"}, {Name: "team-b"}, {Name: "gone", Terminating: true}})
				w.Revisions.Replace(nil, nil)
				m, err := newMetrics(prometheus.NewRegistry())
				if err != nil {
					t.Fatal(err)
				}
				r := newReconciler(&Controller{log: log, watcher: w, metrics: m, pace: defaultPace})
				r.namespaces.ShutDown()
				var got []string
				r.namespaces = control.NewController(time.Second, time.Second, func(_ context.Context, namespace string) (time.Duration, error) {
					got = append(got, namespace)
					return 0, nil
				})
				for _, remove := range r.follow(w) {
					defer remove()
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); r.namespaces.Run(ctx, 1) }()
				synctest.Wait()
				if name != "what is there when it begins" {
					got = nil
				}
				test.do(w)
				if test.after > 0 {
					time.Sleep(test.after - time.Millisecond)
					synctest.Wait()
					if len(got) > 0 {
						t.Errorf("%v too early", got)
					}
				}
				time.Sleep(2 * time.Millisecond)
				synctest.Wait()
				slices.Sort(got)
				if !slices.Equal(got, test.want) {
					t.Errorf("reconciled are %v, want %v", got, test.want)
				}
				cancel()
				<-done
			})
		})
	}
}
