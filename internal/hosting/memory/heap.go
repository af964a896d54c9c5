// SPDX-License-Identifier: Apache-2.0

// Package memory adapts Go's memory management to a process that answers reviews.
package memory

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// spareHeap is the least growth of the heap before a garbage collection. By default Go collects
// when the heap has doubled. A server with few PodDefaults has so small a heap that Go would
// collect hundreds of times a second under load and spend a fifth of a review's CPU time on it.
// With this one it is a twentieth.
const spareHeap = 32 << 20

// quiet is how long after a garbage collection without another one a server returns memory to the system: reading many
// objects at its start, and what a leader then does, take memory that an idle server would keep for long, since it
// runs no collection.
const quiet = 5 * time.Second

// Manage limits the memory of the process to its container's and spaces its garbage collections
// for a webhook server, until stop is called. GOMEMLIMIT and GOGC take precedence.
//
// Between collections, the heap may grow to twice the live heap, and by at least spareHeap. The
// memory limit always holds: the runtime collects earlier if it has to.
func Manage() (stop func()) {
	limit()
	ctx, cancel := context.WithCancel(context.Background())
	tuneHeap(ctx, quiet)
	return cancel
}

// tuneHeap sets the percentage after every collection, before the heap grows again. Otherwise a
// cache that fills within a second would be collected at the rate for an empty one.
func tuneHeap(ctx context.Context, quiet time.Duration) {
	tuner := &heapTuner{ctx: ctx, quiet: quiet, given: os.Getenv("GOGC") != "", percent: 100, sample: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
	tuner.timer = time.AfterFunc(quiet, tuner.free)
	context.AfterFunc(ctx, func() { tuner.timer.Stop() })
	tuner.tune()
	runtime.SetFinalizer(&collected{tuner}, (*collected).again)
}

type heapTuner struct {
	ctx     context.Context
	quiet   time.Duration
	given   bool // GOGC is, and is left alone
	percent int
	sample  []metrics.Sample
	timer   *time.Timer
	freed   atomic.Bool // by the collection that comes next
}

// free returns memory to the system, by a collection.
func (t *heapTuner) free() {
	t.freed.Store(true)
	debug.FreeOSMemory()
}

// collected is garbage: its finalizer runs after each collection.
type collected struct{ tuner *heapTuner }

func (c *collected) again() {
	if c.tuner.ctx.Err() != nil {
		return
	}
	c.tuner.tune()
	if !c.tuner.freed.Swap(false) {
		c.tuner.timer.Reset(c.tuner.quiet)
	}
	runtime.SetFinalizer(c, (*collected).again)
}

func (t *heapTuner) tune() {
	if t.given {
		return
	}
	metrics.Read(t.sample)
	// The runtime scales its own minimum target, 4 MiB at 100 %, with the percentage. Smaller
	// heaps make no difference.
	live := max(t.sample[0].Value.Uint64(), 4<<20)
	if wanted := heapPercent(live); wanted > t.percent*5/4 || wanted < t.percent*4/5 {
		t.percent = wanted
		debug.SetGCPercent(wanted)
	}
}

// heapPercent returns the value of GOGC for a live heap in bytes.
func heapPercent(live uint64) int {
	return max(100, int(spareHeap*100/live))
}
