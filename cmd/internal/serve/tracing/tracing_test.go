// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"log/slog"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestSettingsReportEveryProblem(t *testing.T) {
	for name, test := range map[string]struct {
		settings Settings
		problems []string
	}{
		"nothing is traced":                {Settings{}, nil},
		"a collector on the node":          {Settings{Endpoint: "localhost:4317", SamplingRatePerMillion: 100}, nil},
		"all calls":                        {Settings{Endpoint: "[::1]:4317", SamplingRatePerMillion: 1_000_000}, nil},
		"a URL, and a rate out of bounds":  {Settings{Endpoint: "http://localhost:4317", SamplingRatePerMillion: 1_000_001}, []string{"tracing.endpoint", "tracing.samplingRatePerMillion"}},
		"no port":                          {Settings{Endpoint: "localhost"}, []string{"HOST:PORT"}},
		"a rate without somebody to tell":  {Settings{SamplingRatePerMillion: 1}, []string{"without endpoint"}},
		"less than nothing of the calls":   {Settings{Endpoint: "localhost:4317", SamplingRatePerMillion: -1}, []string{"must be between 0 and 1000000"}},
		"a port without a host to go with": {Settings{Endpoint: ":4317"}, []string{"HOST:PORT"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.settings.Validate(field.NewPath("tracing")).ToAggregate()
			if (err != nil) != (len(test.problems) > 0) {
				t.Fatal(err)
			}
			for _, problem := range test.problems {
				if !strings.Contains(err.Error(), problem) {
					t.Errorf("%q does not say %q", err, problem)
				}
			}
		})
	}
}

func TestWithoutACollectorThereIsNoTracer(t *testing.T) {
	tracer, shutdown, err := (&Settings{}).Start(t.Context(), "test", "v1", slog.New(slog.DiscardHandler))
	if tracer != nil || err != nil {
		t.Errorf("%v, %v", tracer, err)
	}
	if err := shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
