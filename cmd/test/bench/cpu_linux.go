// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime returns the CPU time that all threads of a process have used so far,
// user and system, in nanoseconds of the scheduler. It reads the CPU-time clock
// of the process, which counts threads that have ended too and does not round
// to clock ticks as /proc/PID/stat does; see clock_getcpuclockid(3).
func cpuTime(pid int) (time.Duration, error) {
	const scheduler = 2 // CPUCLOCK_SCHED
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduler), &ts); err != nil {
		return 0, fmt.Errorf("reading the CPU time of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

// peakRSS returns the largest resident set size of a process since its start,
// in bytes: VmHWM of proc_pid_status(5).
func peakRSS(pid int) (int64, error) { return statusOf(pid, "VmHWM") }

// currentRSS returns the resident set size of a process, in bytes: VmRSS.
func currentRSS(pid int) (int64, error) { return statusOf(pid, "VmRSS") }

// anonymousRSS is the part of it that is not a file: RssAnon.
func anonymousRSS(pid int) (int64, error) { return statusOf(pid, "RssAnon") }

// fileRSS is the part of it that is mapped files: RssFile.
func fileRSS(pid int) (int64, error) { return statusOf(pid, "RssFile") }

// endedRSS is the largest resident set size that a process had which has ended, in bytes: getrusage(2).
func endedRSS(of *os.ProcessState) int64 {
	usage, ok := of.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return usage.Maxrss << 10
}

func statusOf(pid int, field string) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	return parseStatus(status, field)
}

func parseStatus(status []byte, field string) (int64, error) {
	for line := range bytes.Lines(status) {
		value, found := bytes.CutPrefix(line, []byte(field+":"))
		if !found {
			continue
		}
		kib, found := bytes.CutSuffix(bytes.TrimSpace(value), []byte(" kB"))
		if !found {
			return 0, fmt.Errorf("%s is not in kB: %q", field, line)
		}
		n, err := strconv.ParseInt(string(kib), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s is not a number: %w", field, err)
		}
		return n << 10, nil
	}
	return 0, fmt.Errorf("no %s in the status of the process", field)
}
