// SPDX-License-Identifier: Apache-2.0

package persistentvolumelabel

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
)

func TestCallsToTheCloudAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics, err := NewMetrics(registry, "webhook")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewMetrics(registry, "controller"); err != nil {
		t.Errorf("a second caller: %v", err)
	}
	settings := DefaultSettings()
	settings.MaxCalls = 1
	release, begun := make(chan struct{}), make(chan struct{})
	webhooks, err := New(labelerFunc(func(_ context.Context, pv *corev1.PersistentVolume) (map[string]string, error) {
		switch pv.Spec.GCEPersistentDisk.PDName {
		case "gone":
			return nil, errors.New("there is none")
		case "odd":
			panic("a fault")
		case "slow":
			close(begun)
			<-release
		}
		return zoneA, nil
	}), settings, metrics)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(id string) { _, _ = webhooks[0].Handler.Handle(t.Context(), disk(id)) } // the metrics say what came of it
	slow := make(chan struct{})
	go func() { ask("slow"); close(slow) }()
	<-begun
	if got := testutil.ToFloat64(metrics.inFlight); got != 1 {
		t.Errorf("%v calls are in flight", got)
	}
	ask("another")
	close(release)
	<-slow
	for _, id := range []string{"gone", "odd", "slow"} { // the last is remembered
		for len(webhooks[0].Handler.(*handler).lookups.slots) > 0 {
			runtime.Gosched() // a call is over a moment after its answer
		}
		ask(id)
	}
	for result, want := range map[string]float64{resultLabels: 1, resultError: 1, resultFault: 1, resultTooMany: 1} {
		if got := testutil.ToFloat64(metrics.calls.WithLabelValues(result)); got != want {
			t.Errorf("%v calls with the result %s", got, result)
		}
	}
	if testutil.CollectAndCount(metrics.duration) != 1 || testutil.ToFloat64(metrics.inFlight) != 0 {
		t.Error("durations are not observed, or a call is still in flight")
	}
}
