// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"testing"
	"time"
)

func TestTimeBudget(t *testing.T) {
	for name, test := range map[string]struct {
		query string
		want  time.Duration
	}{
		"the default timeout of a webhook loses the whole margin": {"timeout=10s", 9500 * time.Millisecond},
		"the shortest timeout of a webhook loses a quarter":       {"timeout=1s", 750 * time.Millisecond},
		"the longest timeout":                      {"timeout=30s", 29500 * time.Millisecond},
		"minutes and seconds":                      {"timeout=0m3s", 2500 * time.Millisecond},
		"more than the API server would allow":     {"timeout=1h", 29500 * time.Millisecond},
		"none":                                     {"", 29500 * time.Millisecond},
		"a number without a unit":                  {"timeout=10", 29500 * time.Millisecond},
		"zero":                                     {"timeout=0s", 29500 * time.Millisecond},
		"a negative time":                          {"timeout=-5s", 29500 * time.Millisecond},
		"an empty value":                           {"timeout=", 29500 * time.Millisecond},
		"other parameters around it":               {"a=b&timeout=2s&c", 1500 * time.Millisecond},
		"the first of two counts":                  {"timeout=2s&timeout=4s", 1500 * time.Millisecond},
		"a parameter whose name only ends like it": {"mytimeout=2s", 29500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			if got := timeBudget(test.query); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func FuzzTimeBudget(f *testing.F) {
	for _, query := range []string{"timeout=10s", "timeout=1ns", "a&timeout=1h1m1s1ms1us1ns", "timeout=9999999h", "%74imeout=1s"} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		if got := timeBudget(query); got <= 0 || got > maxTimeout {
			t.Errorf("got %s, want more than nothing and at most %s", got, maxTimeout)
		}
	})
}
