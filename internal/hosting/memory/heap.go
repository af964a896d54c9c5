// SPDX-License-Identifier: Apache-2.0

// Package memory adapts Go's memory management to a process that answers reviews.
package memory

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// spareHeap is the least growth of the heap before a garbage collection. By default Go collects
// when the heap has doubled. A server with few PodDefaults has so small a heap that Go would
// collect hundreds of times a second under load and spend a fifth of a review's CPU time on it.
// With this one it is a twentieth.
const spareHeap = 32 << 20

// freeAfter are the times after its start at which a server returns memory of its start to the system: reading many
// objects takes a while, and what the leader then does takes minutes. An idle server runs no garbage collection, so
// the memory would stay allocated for long.
var freeAfter = []time.Duration{10 * time.Second, 30 * time.Second, 5 * time.Minute}

// Manage limits the memory of the process to its container's and spaces its garbage collections
// for a webhook server, until stop is called. GOMEMLIMIT and GOGC take precedence.
//
// Between collections, the heap may grow to twice the live heap, and by at least spareHeap. The
// memory limit always holds: the runtime collects earlier if it has to.
func Manage() (stop func()) {
	limit()
	ctx, cancel := context.WithCancel(context.Background())
	tuneHeap(ctx)
	return cancel
}

// tuneHeap sets the percentage after every collection, before the heap grows again. Otherwise a
// cache that fills within a second would be collected at the rate for an empty one.
func tuneHeap(ctx context.Context) {
	for _, after := range freeAfter {
		timer := time.AfterFunc(after, debug.FreeOSMemory)
		context.AfterFunc(ctx, func() { timer.Stop() })
	}
	if os.Getenv("GOGC") != "" {
		return
	}
	tuner := &heapTuner{ctx: ctx, percent: 100, sample: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
	tuner.tune()
	runtime.SetFinalizer(&collected{tuner}, (*collected).again)
}

type heapTuner struct {
	ctx     context.Context
	percent int
	sample  []metrics.Sample
}

// collected is garbage: its finalizer runs after each collection.
type collected struct{ tuner *heapTuner }

func (c *collected) again() {
	if c.tuner.ctx.Err() == nil {
		c.tuner.tune()
		runtime.SetFinalizer(c, (*collected).again)
	}
}

func (t *heapTuner) tune() {
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
