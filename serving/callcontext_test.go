// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// The end of a call is visible to waiters and to callers of Err, whether they came
// before or after.
func TestACallContextEndsAsOneOfTheStandardLibraryDoes(t *testing.T) {
	type key struct{}
	for name, tc := range map[string]struct {
		end  func(cancelParent, end func())
		want error
	}{
		"by its deadline":             {func(_, _ func()) { time.Sleep(time.Minute) }, context.DeadlineExceeded},
		"by its caller":               {func(cancelParent, _ func()) { cancelParent() }, context.Canceled},
		"by its answer":               {func(_, end func()) { end() }, context.Canceled},
		"by its deadline, then more":  {func(_, end func()) { time.Sleep(2 * time.Minute); end() }, context.DeadlineExceeded},
		"by its answer, then so late": {func(_, end func()) { end(); time.Sleep(time.Minute) }, context.Canceled},
	} {
		for _, waits := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					parent, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "v"))
					defer cancel()
					ctx := withDeadline(parent, time.Now().Add(time.Minute))
					defer ctx.end()
					var child context.Context = ctx
					if waits {
						var cancelChild context.CancelFunc
						child, cancelChild = context.WithCancel(ctx)
						defer cancelChild()
					}
					if ctx.Err() != nil || child.Err() != nil || ctx.Value(key{}) != "v" {
						t.Fatalf("it begins with %v, %v and value %v", ctx.Err(), child.Err(), ctx.Value(key{}))
					}
					tc.end(cancel, ctx.end)
					synctest.Wait()
					if !errors.Is(ctx.Err(), tc.want) || !errors.Is(child.Err(), tc.want) {
						t.Errorf("got %v, its child %v, want %v", ctx.Err(), child.Err(), tc.want)
					}
					<-ctx.Done()
					<-child.Done()
					cancel()
					if !errors.Is(ctx.Err(), tc.want) {
						t.Errorf("later it is %v, and was %v", ctx.Err(), tc.want)
					}
				})
			})
		}
	}
}

func TestACallContextEndsNoLaterThanItsParent(t *testing.T) {
	parent, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	want, _ := parent.Deadline()
	ctx := withDeadline(parent, time.Now().Add(time.Hour))
	defer ctx.end()
	if got, ok := ctx.Deadline(); !ok || !got.Equal(want) {
		t.Errorf("got %v, %t, want %v", got, ok, want)
	}
}

// A handler that only computes creates no timer and no channel.
func TestACallContextThatNobodyWaitsForIsOneAllocation(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	defer cancel()
	deadline := time.Now().Add(time.Minute)
	var err error
	got := testing.AllocsPerRun(100, func() {
		ctx := withDeadline(parent, deadline)
		err = ctx.Err()
		ctx.end()
	})
	if err != nil || got > 1 {
		t.Errorf("%v allocations, %v", got, err)
	}
}
