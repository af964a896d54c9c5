// SPDX-License-Identifier: Apache-2.0

// Package pace says when to write: how long to wait before an object that others change is repaired, or a write that failed
// is repeated, and which webhooks are registered before others.
package pace

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
	WritesPerSecond  = 2 // for whatever reason, after a burst of
	WritesBurst      = 20
	EventPause       = 5 * time.Minute // between events about one object
)

// Repairs backs off the repair of objects that other clients change. The first repair is
// immediate; if another client keeps changing the object, each further repair waits twice
// as long.
type Repairs struct {
	pause time.Duration
	last  time.Time
}

// Next is the earliest time of the next repair.
func (r *Repairs) Next() time.Time {
	if r.last.IsZero() {
		return time.Time{}
	}
	return r.last.Add(r.pause)
}

// Done records a repair. No repair for four backoffs, at least a minute, resets the backoff.
func (r *Repairs) Done(now time.Time) {
	if r.last.IsZero() || now.Sub(r.last) > max(4*r.pause, time.Minute) {
		r.pause = firstRepairPause
	} else {
		r.pause = min(2*r.pause, maxRepairPause)
	}
	r.last = now
}

// Failures backs off retries after errors exponentially, with jitter.
func Failures() wait.Backoff {
	return wait.Backoff{Duration: firstErrorPause, Factor: 2, Jitter: 0.2, Cap: maxErrorPause, Steps: 1 << 16}
}
