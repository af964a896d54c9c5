// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-io/sallyport/admission"
)

func TestStaging(t *testing.T) {
	mutating := func(name string) admission.Webhook {
		return admission.Webhook{Name: name, Type: admission.TypeMutating}
	}
	validating := func(name string) admission.Webhook {
		return admission.Webhook{Name: name, Type: admission.TypeValidating}
	}
	first := mutating("first")
	type step struct {
		at     time.Duration
		wanted []admission.Webhook
		want   []string
		again  time.Duration // 0: never
	}
	second := time.Second
	both := []admission.Webhook{first, mutating("set"), validating("check")}
	tests := map[string][]step{
		"at first all is registered": {{0, both, []string{"first", "set", "check"}, 0}},
		"what validates comes after what mutates": {
			{0, []admission.Webhook{first}, []string{"first"}, 0},
			{second, both, []string{"first", "set"}, 4 * second},
			{2 * second, both, []string{"first", "set"}, 4 * second},
			{4 * second, both, []string{"first", "set", "check"}, 0},
			{5 * second, both, []string{"first", "set", "check"}, 0},
		},
		"what only validates comes at once": {
			{0, []admission.Webhook{first}, []string{"first"}, 0},
			{second, []admission.Webhook{first, validating("check")}, []string{"first", "check"}, 0},
		},
		"what mutates goes after what validates": {
			{0, both, []string{"first", "set", "check"}, 0},
			{second, []admission.Webhook{first}, []string{"first", "set"}, 4 * second},
			{4 * second, []admission.Webhook{first}, []string{"first"}, 0},
		},
		"what only mutates goes at once": {
			{0, both, []string{"first", "set", "check"}, 0},
			{second, both[1:], []string{"set", "check"}, 0},
		},
		"another mind in between": {
			{0, []admission.Webhook{first}, []string{"first"}, 0},
			{second, both, []string{"first", "set"}, 4 * second},
			{2 * second, []admission.Webhook{first}, []string{"first"}, 0},
			{3 * second, both, []string{"first", "set"}, 6 * second},
		},
		"back while it goes": {
			{0, both, []string{"first", "set", "check"}, 0},
			{second, []admission.Webhook{first}, []string{"first", "set"}, 4 * second},
			{2 * second, both, []string{"first", "set", "check"}, 0},
		},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			var s Staging
			start := time.Unix(1000, 0)
			for _, step := range steps {
				registered, again := s.Next(start.Add(step.at), step.wanted)
				var got []string
				for _, w := range registered {
					got = append(got, w.Name)
				}
				if diff := cmp.Diff(step.want, got); diff != "" {
					t.Errorf("at %s (- want, + got):\n%s", step.at, diff)
				}
				want := time.Time{}
				if step.again > 0 {
					want = start.Add(step.again)
				}
				if !again.Equal(want) {
					t.Errorf("at %s: again at %s, want %s", step.at, again, want)
				}
			}
		})
	}
}
