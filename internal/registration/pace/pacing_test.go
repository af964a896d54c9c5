// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"testing"
	"time"
)

func TestRepairsWaitLongerWhileSomebodyInsists(t *testing.T) {
	var r Repairs
	now := time.Now()
	if !r.Next().IsZero() {
		t.Fatal("the first repair has to wait")
	}
	want := firstRepairPause
	for range 20 {
		r.Done(now)
		if got := r.Next().Sub(now); got != want {
			t.Fatalf("pause of %s, want %s", got, want)
		}
		now = r.Next()
		want = min(2*want, maxRepairPause)
	}
	now = now.Add(4*maxRepairPause + time.Second)
	r.Done(now)
	if got := r.Next().Sub(now); got != firstRepairPause {
		t.Errorf("pause of %s after a quiet time, want %s", got, firstRepairPause)
	}
}

func TestFailuresWaitLongerUpToALimit(t *testing.T) {
	backoff := Failures()
	var last time.Duration
	for i := range 200 {
		last = backoff.Step()
		if last < firstErrorPause || last > maxErrorPause*6/5 {
			t.Fatalf("step %d pauses for %s", i, last)
		}
	}
	if last < maxErrorPause {
		t.Errorf("the last pause is %s, want %s", last, maxErrorPause)
	}
}
