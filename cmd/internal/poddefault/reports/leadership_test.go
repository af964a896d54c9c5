// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"log/slog"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/internal/store"
)

// TestTheLeaderLooksAtReportsThatAChangeConcerns sets objects and lists reports.
func TestTheLeaderLooksAtReportsThatAChangeConcerns(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	w, err := source.Watch(store.NewFactory(&rest.Config{}, log), source.WatchOptions{Recorded: true}, log, func() {})
	if err != nil {
		t.Fatal(err)
	}
	one := compiled("one", 1, "both set env A")
	w.PodDefaults.Replace([]*plan.Plan{one, compiled("two", 1, "")})
	everywhere := func(generation int64) *plan.Plan {
		return plan.CompileCluster(&sallyportv1alpha1.ClusterPodDefault{ObjectMeta: metav1.ObjectMeta{Name: "everywhere", Generation: generation}})
	}
	var woken []string
	l := newLeadership(w, func(namespace string) { woken = append(woken, namespace) })
	removes := l.follow()
	for _, step := range []struct {
		what string
		do   func()
		want bool
	}{
		{"a conflict that was there before", func() {}, true},
		{"the same in another state", func() { w.PodDefaults.Set(compiled("one", 1, "both set env A")) }, false},
		{"another message", func() { w.PodDefaults.Set(compiled("one", 1, "both set env B")) }, true},
		{"the conflict is solved", func() { w.PodDefaults.Set(compiled("one", 1, "")) }, true},
		{"a new object", func() { w.PodDefaults.Set(compiled("three", 1, "")) }, false},
		{"another spec", func() { w.PodDefaults.Set(compiled("three", 2, "")) }, true},
		{"a deletion", func() { w.PodDefaults.Delete(compiled("three", 2, "").Identity().NamespacedName) }, true},
		{"a report that is new", func() { l.reported([]string{"team-a"}) }, true},
		{"a report that is known", func() { l.reported([]string{"team-a"}) }, false},
		{"a report that was deleted", func() { l.has("team-a", false) }, false},
		{"and that another replica wrote again", func() { l.reported([]string{"team-a"}) }, true},
		{"a new ClusterPodDefault", func() { w.ClusterPodDefaults.Set(everywhere(1)) }, false},
		{"another spec of a ClusterPodDefault", func() { w.ClusterPodDefaults.Set(everywhere(2)) }, true},
		{"a replica that does not lead any more", func() {
			for _, remove := range removes {
				remove()
			}
			w.PodDefaults.Set(compiled("two", 2, ""))
		}, false},
	} {
		step.do()
		var want []string
		if step.want {
			want = []string{"team-a"}
		}
		if !slices.Equal(woken, want) {
			t.Errorf("%s: woken for %q, want %q", step.what, woken, want)
		}
		woken = nil
	}
	if got := (*leadership)(nil).state("team-a"); got != nil {
		t.Errorf("a replica that never led knows %+v", got)
	}
}
