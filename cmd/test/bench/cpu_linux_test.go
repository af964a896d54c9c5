// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"
)

func TestCPUTimeGrowsWithWork(t *testing.T) {
	before, err := cpuTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for i := range 1_000_000 {
		sum += i * i
	}
	after, err := cpuTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if after <= before {
		t.Errorf("%s before, %s after work that came to %d", before, after, sum)
	}
}

func TestCPUTimeOfNoProcessIsAnError(t *testing.T) {
	const none = 1 << 28 // beyond the largest PID of Linux, 1<<22
	if got, err := cpuTime(none); err == nil {
		t.Errorf("got %s", got)
	}
	if got, err := peakRSS(none); err == nil {
		t.Errorf("got %d bytes", got)
	}
}

func TestPeakRSSOfThisProcess(t *testing.T) {
	peak, err := peakRSS(os.Getpid())
	now, errNow := currentRSS(os.Getpid())
	if err != nil || errNow != nil || now < 1<<20 || peak < now/2 { // the kernel updates both now and then
		t.Errorf("got %d bytes of %d at the peak, %v, %v", now, peak, err, errNow)
	}
}

func TestParseStatus(t *testing.T) {
	tests := map[string]struct {
		status string
		want   int64 // -1: an error
	}{
		"the line among others":    {"Name:\tbench\nVmHWM:\t   10240 kB\nVmRSS:\t 5 kB\n", 10 << 20},
		"no line":                  {"Name:\tbench\nVmRSS:\t 5 kB\n", -1},
		"a line in another unit":   {"VmHWM:\t 10 MB\n", -1},
		"a line without a number":  {"VmHWM:\t x kB\n", -1},
		"a status without content": {"", -1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseStatus([]byte(test.status), "VmHWM")
			if (err != nil) != (test.want < 0) || err == nil && got != test.want {
				t.Errorf("got %d, %v, want %d", got, err, test.want)
			}
		})
	}
}
