// SPDX-License-Identifier: Apache-2.0

package status

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
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/internal/store"
	"github.com/sallyport-io/sallyport/test/lab"
)

// newWatcher returns a watcher that a test fills.
func newWatcher(t *testing.T) *source.Watcher {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	w, err := source.Watch(store.NewFactory(&rest.Config{}, log), source.WatchOptions{Recorded: true}, log, func() {})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestWhatTheWatchTellsIsTakenIn(t *testing.T) {
	w := newWatcher(t)
	x, y := podDefault("team-a", "x", "p", "1"), podDefault("team-a", "y", "q", "2")
	w.PodDefaults.Replace([]*plan.Plan{x, y})
	r := newTestReconciler(t)
	r.watcher = w
	removes := r.follow(w)
	both := []string{"PodDefault team-a/x with PodDefault team-a/y", "PodDefault team-a/y with PodDefault team-a/x"}
	for _, step := range []struct {
		what string
		do   func()
		want []string
	}{
		{"what was there before", func() {}, both},
		{"all are read anew, and one is not there", func() { w.PodDefaults.Replace([]*plan.Plan{x}) }, nil},
		{"it comes back", func() { w.PodDefaults.Set(y) }, both},
		{"one is deleted", func() { w.PodDefaults.Delete(y.Identity().NamespacedName) }, nil},
		{"one for namespaces with a label comes", func() {
			w.ClusterPodDefaults.Set(clusterPodDefault("gold", "3", &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}))
		}, nil},
		{"the namespace gets the label", func() { w.Namespaces.Set(&store.Namespace{Name: "team-a", Labels: labels.Set{"tier": "gold"}}) },
			[]string{"ClusterPodDefault gold with PodDefault team-a/x", "PodDefault team-a/x with ClusterPodDefault gold"}},
		{"the namespace goes", func() { w.Namespaces.Replace(nil) }, nil},
	} {
		step.do()
		for r.observe() {
		}
		r.compareNow()
		if got := r.pairs(); !slices.Equal(got, step.want) {
			t.Errorf("%s: got %q, want %q", step.what, got, step.want)
		}
	}
	for _, remove := range removes {
		remove()
	}
	if w.PodDefaults.Set(y); r.pending.any() {
		t.Error("a replica that does not lead is told of changes")
	}
}

// TestNothingIsWrittenBeforeEverythingWasRead: a subset of the objects has a subset of
// the conflicts.
func TestNothingIsWrittenBeforeEverythingWasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatcher(t)
		c, err := New(&rest.Config{}, Options{Watcher: w, Leader: lab.NewLeader(true), Logger: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()})
		if err != nil {
			t.Fatal(err)
		}
		compared := false
		c.overlap = func(_, _ *plan.Plan) []string { compared = true; return nil }
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		w.PodDefaults.Replace([]*plan.Plan{podDefault("team-a", "x", "p", "1"), podDefault("team-a", "y", "q", "2")})
		w.ClusterPodDefaults.Replace(nil)
		time.Sleep(time.Minute)
		if compared {
			t.Error("it begins before namespaces were read")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
