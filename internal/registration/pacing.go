// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Limits of the backoffs below, and of writes as a whole.
const (
	firstRepairPause = time.Second
	maxRepairPause   = 5 * time.Minute
	firstErrorPause  = 500 * time.Millisecond
	maxErrorPause    = time.Minute
	writesPerSecond  = 2 // for whatever reason, after a burst of
	writesBurst      = 20
	eventPause       = 5 * time.Minute // between events about one object
)

// repairs backs off the repair of objects that other clients change. The first repair is
// immediate; if another client keeps changing the object, each further repair waits twice
// as long.
type repairs struct {
	pause time.Duration
	last  time.Time
}

// next is the earliest time of the next repair.
func (r *repairs) next() time.Time {
	if r.last.IsZero() {
		return time.Time{}
	}
	return r.last.Add(r.pause)
}

// done records a repair. No repair for four backoffs, at least a minute, resets the backoff.
func (r *repairs) done(now time.Time) {
	if r.last.IsZero() || now.Sub(r.last) > max(4*r.pause, time.Minute) {
		r.pause = firstRepairPause
	} else {
		r.pause = min(2*r.pause, maxRepairPause)
	}
	r.last = now
}

// failures backs off retries after errors exponentially, with jitter.
func failures() wait.Backoff {
	return wait.Backoff{Duration: firstErrorPause, Factor: 2, Jitter: 0.2, Cap: maxErrorPause, Steps: 1 << 16}
}
