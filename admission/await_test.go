// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sallyport-io/sallyport/admission"
)

// room is a place that one can leave, and may find taken afterwards.
type room struct{ left, taken bool }

func (r *room) Leave(_ context.Context, wait func()) bool {
	r.left = true
	wait()
	return !r.taken
}

func TestAwait(t *testing.T) {
	failed := errors.New("away")
	for name, tc := range map[string]struct {
		place     *room
		err, want error
		again     bool
	}{
		"what is waited for comes":                 {place: &room{}},
		"what is waited for fails":                 {place: &room{}, err: failed, want: failed},
		"there is no room afterwards":              {place: &room{taken: true}, again: true},
		"it fails, and there is no room":           {place: &room{taken: true}, err: failed, want: failed},
		"nobody bounds how many reviews there are": {err: failed, want: failed},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if tc.place != nil {
				ctx = admission.WithYield(ctx, tc.place.Leave)
			}
			waited := false
			err := admission.Await(ctx, func() error { waited = true; return tc.err })
			if _, again := admission.RetryAfter(err); again != tc.again || !tc.again && !errors.Is(err, tc.want) || !waited {
				t.Errorf("got %v, waited: %t", err, waited)
			}
			if tc.place != nil && !tc.place.left {
				t.Error("it kept its place")
			}
		})
	}
}
