// SPDX-License-Identifier: Apache-2.0

//go:build unix

package poddefault

import (
	"syscall"
	"testing"
	"time"
)

// processorTime returns the CPU time of the process, in all threads.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkHostilePods reports the cost of each case: cpu-ms/op is CPU time including
// the garbage collector, at most 250.
func BenchmarkHostilePods(b *testing.B) {
	for _, c := range hostiles {
		b.Run(c.name, func(b *testing.B) {
			raw, objects := c.make(c.n)
			index := indexOf(objects...)
			b.ReportAllocs()
			start := processorTime()
			for b.Loop() {
				handleFrom(b, raw, index)
			}
			b.ReportMetric((processorTime()-start).Seconds()*1000/float64(b.N), "cpu-ms/op")
		})
	}
}
