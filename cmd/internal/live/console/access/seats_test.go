// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"testing"
)

func TestSeatsAreFreeAgain(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s := NewSeats(2, 1, 1)
	take := func(ctx context.Context, user string, want error) (leave func()) {
		t.Helper()
		leave, err := s.Take(ctx, user)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", user, err, want)
		}
		return leave
	}
	a, b := take(t.Context(), "a", nil), take(t.Context(), "b", nil)
	take(ended, "a", ErrUser) // waits for the own
	take(ended, "c", ErrAll)
	a()
	c := take(ended, "c", nil)
	b()
	c()
	if len(s.users) != 0 || len(s.all) != 0 {
		t.Errorf("%d users and %d seats are left", len(s.users), len(s.all))
	}
}
