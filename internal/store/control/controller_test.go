// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestKeysAreReconciledUntilTheyAreRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var at []time.Duration
		ctx, cancel := context.WithCancel(t.Context())
		c := NewController(time.Second, 3*time.Second, func(_ context.Context, key string) (time.Duration, error) {
			if at = append(at, time.Since(start).Round(10*time.Millisecond)); len(at) <= 3 {
				return 0, errors.New("away")
			}
			if len(at) == 4 {
				return time.Minute, nil
			}
			return 0, nil
		})
		for range 3 {
			c.Enqueue("a", 0) // counts once
		}
		done := make(chan struct{})
		go func() { defer close(done); c.Run(ctx, 2) }()
		time.Sleep(time.Hour)
		synctest.Wait()
		want := []time.Duration{0, time.Second, 3 * time.Second, 6 * time.Second, 66 * time.Second}
		if !slices.Equal(at, want) {
			t.Errorf("reconciled at %v, want %v", at, want)
		}
		cancel()
		<-done
	})
}

func TestOneKeyIsNotReconciledTwiceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		working, most, calls := 0, 0, 0
		ctx, cancel := context.WithCancel(t.Context())
		c := NewController(time.Second, time.Second, func(context.Context, string) (time.Duration, error) {
			working, calls = working+1, calls+1
			most = max(most, working)
			time.Sleep(time.Second)
			working--
			return 0, nil
		})
		done := make(chan struct{})
		go func() { defer close(done); c.Run(ctx, 4) }()
		c.Enqueue("a", 0)
		time.Sleep(time.Second / 2)
		c.Enqueue("a", 0)
		c.Enqueue("a", 0)
		time.Sleep(time.Minute)
		synctest.Wait()
		if most != 1 || calls != 2 {
			t.Errorf("%d at once, %d calls", most, calls)
		}
		cancel()
		<-done
	})
}
