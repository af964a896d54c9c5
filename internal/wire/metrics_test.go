// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/sallyport-io/sallyport/admission"
)

func TestOutcomesAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	a, err := NewAdmission(definition(admission.TypeMutating, func(_ context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
		switch req.Name {
		case "allow":
			return admission.Allowed(), nil
		case "patch":
			return admission.Patched(somePatch), nil
		case "deny":
			return &admission.Response{Patch: somePatch}, nil
		case "unavailable":
			return nil, admission.Unavailable(errors.New("no cache"), 0)
		}
		return nil, nil
	}), AdmissionOptions{Metrics: metrics})
	if err != nil {
		t.Fatal(err)
	}
	s := &served{Admission: a}

	want := map[string]float64{"allowed": 0, "patched": 0, "denied": 0, "rejected": 0, "failed": 0}
	check := func(name string) {
		t.Helper()
		got := outcomes(t, registry)
		if len(got) != len(want) {
			t.Errorf("%s: got %v", name, got)
		}
		for outcome, n := range want {
			if got[outcome] != n {
				t.Errorf("%s: %s is %v, want %v", name, outcome, got[outcome], n)
			}
		}
	}
	check("all outcomes are there before the first review")
	for _, call := range []struct{ body, outcome string }{
		{review(`{"uid":"u","name":"allow"}`), "allowed"},
		{review(`{"uid":"u","name":"allow"}`), "allowed"},
		{review(`{"uid":"u","name":"patch","object":{}}`), "patched"},
		{review(`{"uid":"u","name":"deny","object":{}}`), "denied"},
		{review(`{"uid":"u","name":"unavailable"}`), "failed"},
		{review(`{"uid":"u","name":"a patch without an object"}`), "failed"},
		{review(`{"uid":"u","name":"patch"}`), "failed"},
		{review(`{"uid":"u","name":"allow"}}`), "rejected"},
		{"", "rejected"},
	} {
		s.answer(post(call.body))
		want[call.outcome]++
		check(call.body)
	}
}

// outcomes reads the counters as Prometheus does.
func outcomes(t *testing.T, gatherer prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := gatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "sallyport_admission_reviews_total" {
			t.Errorf("unexpected metric %s", family.GetName())
		}
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if labels["webhook"] != "check.crontab.example.com" || len(labels) != 2 {
				t.Errorf("labels %v", labels)
			}
			got[labels["outcome"]] = metric.GetCounter().GetValue()
		}
	}
	return got
}

func TestMetricsAreRegisteredOnce(t *testing.T) {
	registry := prometheus.NewRegistry()
	if _, err := NewMetrics(registry); err != nil {
		t.Fatal(err)
	}
	if _, err := NewMetrics(registry); err == nil || !strings.Contains(err.Error(), "admission reviews") {
		t.Errorf("got %v", err)
	}
}

func TestMetricsMayBeLeftOut(t *testing.T) {
	a, err := NewAdmission(definition(admission.TypeMutating, always(admission.Allowed(), nil)), AdmissionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := &served{Admission: a}
	for _, body := range []string{review(`{"uid":"u"}`), `{}`} {
		s.answer(post(body)) // must not panic
	}
}
