// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// spareHeap is what the heap may grow by before garbage is collected, at least. By
// its own rule Go lets a heap double; that of a server with few PodDefaults is so
// small that it would be collected hundreds of times a second under load, which
// costs a fifth of the processor time of a review. With 16 MiB it is a tenth for reviews
// of 128 KB.
const spareHeap = 32 << 20

// settled is how long after its start a server gives back to the system what starting took:
// a server that has nothing to do collects no garbage, so that it would stay for long.
const settled = 10 * time.Second

// tuneHeap keeps the garbage collector's target at double the live heap or the
// live heap and spareHeap, whichever is more, until the context ends. Somebody who
// sets GOGC knows better, and is left alone. A memory limit holds in any case: the
// runtime collects earlier where that target is beyond it.
//
// The percentage is set anew after every collection, before the heap has grown on: a
// cache that fills within a second must not be collected by the rule for an empty
// one.
func tuneHeap(ctx context.Context) {
	settle := time.AfterFunc(settled, debug.FreeOSMemory)
	context.AfterFunc(ctx, func() { settle.Stop() })
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
	// The runtime's own smallest target, 4 MiB at 100 %, scales with the
	// percentage: below that there is nothing to tell apart.
	live := max(t.sample[0].Value.Uint64(), 4<<20)
	if wanted := heapPercent(live); wanted > t.percent*5/4 || wanted < t.percent*4/5 {
		t.percent = wanted
		debug.SetGCPercent(wanted)
	}
}

// heapPercent is the value of GOGC for a live heap of so many bytes.
func heapPercent(live uint64) int {
	return max(100, int(spareHeap*100/live))
}
