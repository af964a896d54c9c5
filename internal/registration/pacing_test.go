// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"testing"
	"time"
)

func TestRepairsWaitLongerWhileSomebodyInsists(t *testing.T) {
	var r repairs
	now := time.Now()
	if !r.next().IsZero() {
		t.Fatal("the first repair has to wait")
	}
	want := firstRepairPause
	for range 20 {
		r.done(now)
		if got := r.next().Sub(now); got != want {
			t.Fatalf("pause of %s, want %s", got, want)
		}
		now = r.next()
		want = min(2*want, maxRepairPause)
	}
	now = now.Add(4*maxRepairPause + time.Second)
	r.done(now)
	if got := r.next().Sub(now); got != firstRepairPause {
		t.Errorf("pause of %s after a quiet time, want %s", got, firstRepairPause)
	}
}

func TestFailuresWaitLongerUpToALimit(t *testing.T) {
	backoff := failures()
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
