// SPDX-License-Identifier: Apache-2.0

//go:build unix

package poddefault

import (
	"syscall"
	"testing"
	"time"
)

// processorTime is what the process has used so far, in all its threads.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkHostilePods prints what each takes, for people: cpu-ms/op is processor time,
// that of the garbage collector included, and at most 250.
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
