// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// spareHeap is what the heap may grow by before garbage is collected, at least. By
// its own rule Go lets a heap double; that of a server with few PodDefaults is so
// small that it would be collected hundreds of times a second under load, which
// costs a fifth of the processor time of a review.
const spareHeap = 32 << 20

// tuneHeap keeps the garbage collector's target at double the live heap or the
// live heap and spareHeap, whichever is more, until the context ends. Somebody who
// sets GOGC or GOMEMLIMIT knows better, and is left alone.
func tuneHeap(ctx context.Context) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	current := 100
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		metrics.Read(sample)
		// The runtime's own smallest target, 4 MiB at 100 %, scales with the
		// percentage: below that there is nothing to tell apart.
		live := max(sample[0].Value.Uint64(), 4<<20)
		if wanted := heapPercent(live); wanted > current*5/4 || wanted < current*4/5 {
			current = wanted
			debug.SetGCPercent(current)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// heapPercent is the value of GOGC for a live heap of so many bytes.
func heapPercent(live uint64) int {
	return max(100, int(spareHeap*100/live))
}
