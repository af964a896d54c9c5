// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

func TestHeapPercentLeavesRoomToSmallHeapsAndDoublesLargeOnes(t *testing.T) {
	for live, want := range map[uint64]int{4 << 20: 800, 8 << 20: 400, 16 << 20: 200, 32 << 20: 100, 1 << 30: 100} {
		if got := heapPercent(live); got != want {
			t.Errorf("%d MiB: %d, want %d", live>>20, got, want)
		}
	}
}

// TestHeapIsTunedAfterACollection grows and shrinks the live heap, with and without a memory
// limit.
func TestHeapIsTunedAfterACollection(t *testing.T) {
	for _, limit := range []string{"", "256MiB"} {
		t.Run("GOMEMLIMIT="+limit, func(t *testing.T) {
			t.Setenv("GOMEMLIMIT", limit)
			testHeapIsTuned(t)
		})
	}
}

func TestHeapIsLeftToGOGC(t *testing.T) {
	t.Setenv("GOGC", "100")
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tuneHeap(ctx, time.Hour)
	runtime.GC()
	if now := debug.SetGCPercent(100); now != 100 {
		t.Errorf("GOGC is 100, and is %d %% now", now)
	}
}

func testHeapIsTuned(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 2 { // other tests may leave a large heap, and pools survive one collection
		runtime.GC()
	}
	tuneHeap(ctx, time.Hour)
	percent := func() int { // the only way to read it is to set it
		now := debug.SetGCPercent(100)
		debug.SetGCPercent(now)
		return now
	}
	if small := percent(); small <= 100 {
		t.Fatalf("a small heap has %d %%", small)
	}
	large := make([]byte, 64<<20)
	deadline := time.Now().Add(30 * time.Second)
	for percent() != 100 {
		if time.Now().After(deadline) {
			t.Fatalf("a large heap has %d %%", percent())
		}
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	runtime.KeepAlive(large)
}

// TestMemoryIsReturnedAfterACollection, each time, and also where GOGC is given.
func TestMemoryIsReturnedAfterACollection(t *testing.T) {
	t.Setenv("GOGC", "100")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tuneHeap(ctx, 100*time.Millisecond)
	released := []metrics.Sample{{Name: "/memory/classes/heap/released:bytes"}}
	for range 2 {
		before := func() uint64 {
			large := make([]byte, 64<<20)
			metrics.Read(released)
			runtime.KeepAlive(large)
			return released[0].Value.Uint64()
		}()
		runtime.GC()
		for deadline := time.Now().Add(30 * time.Second); released[0].Value.Uint64() < before+48<<20; metrics.Read(released) {
			if time.Now().After(deadline) {
				t.Fatalf("%d MiB are returned, and were %d before", released[0].Value.Uint64()>>20, before>>20)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}
