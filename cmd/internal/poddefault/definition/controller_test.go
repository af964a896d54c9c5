// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/sallyport-io/sallyport/internal/store"
	"github.com/sallyport-io/sallyport/internal/store/control"
)

// TestEventsAreRepeatedWhileFieldsAreMissing: once for each change, again before the event ends, and
// when all is right again.
func TestEventsAreRepeatedWhileFieldsAreMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Controller{Options: Options{Status: &Status{}}, log: slog.New(slog.DiscardHandler), missing: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "missing"}, []string{"definition"})}
		name := types.NamespacedName{Name: "poddefaults.kubeflow.org"}
		s := store.New(store.Kind[*apiextensionsv1.CustomResourceDefinition, *served]{Name: "definition", Example: &apiextensionsv1.CustomResourceDefinition{}, Keep: func(*apiextensionsv1.CustomResourceDefinition) *served { return nil }}, c.log)
		s.Handle(store.Handler[*served]{Changed: c.show})
		recorder := events.NewFakeRecorder(10)
		teller := &teller{map[types.NamespacedName]*store.Store[*served]{name: s}, recorder, map[types.NamespacedName]event{}}
		queue := control.NewController(time.Second, time.Second, teller.reconcile)
		s.HandleNames(func(name types.NamespacedName) { queue.Enqueue(name, 0) })
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { queue.Run(ctx, 1) })
		put := func(version string, missing ...string) func() {
			return func() { s.Set(&served{store.Identity{NamespacedName: name, ResourceVersion: version}, missing}) }
		}
		for _, step := range []struct {
			what   string
			do     func()
			event  string
			detail bool
			series int
		}{
			{"all fields are there", put("1"), "", false, 1},
			{"one is missing", put("2", "spec.sidecars"), "FieldsMissing", true, 1},
			{"another change of the definition", put("3", "spec.sidecars"), "", true, 1},
			{"most of the event's life", func() { time.Sleep(49 * time.Minute) }, "", true, 1},
			{"its end", func() { time.Sleep(2 * time.Minute) }, "FieldsMissing", true, 1},
			{"another field is missing", put("4", "spec.sidecars", "spec.priority"), "FieldsMissing", true, 1},
			{"it is right again", put("5"), "FieldsKnown", false, 1},
			{"a long time", func() { time.Sleep(24 * time.Hour) }, "", false, 1},
			{"one is missing again", put("6", "spec.sidecars"), "FieldsMissing", true, 1},
			{"the definition is deleted", func() { s.Delete(name) }, "", false, 0},
		} {
			step.do()
			synctest.Wait()
			got := ""
			select {
			case got = <-recorder.Events:
			default:
			}
			if (step.event == "") != (got == "") || !strings.Contains(got, step.event) {
				t.Errorf("%s: got event %q, want %q", step.what, got, step.event)
			}
			if n := testutil.CollectAndCount(c.missing); n != step.series {
				t.Errorf("%s: %d series", step.what, n)
			}
			if described := strings.Contains(c.Status.Detail(), "spec.sidecars"); described != step.detail {
				t.Errorf("%s: the status says %q", step.what, c.Status.Detail())
			}
		}
		cancel()
		running.Wait()
	})
}
