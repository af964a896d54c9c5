// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// memoryLimit is that of the container that `sallyport manifests` prints.
const memoryLimit = 256 << 20

// startLimited is startReplica with the memory that the container has: the kernel kills
// what takes more, where there are rights to a cgroup. Elsewhere the runtime is told of
// the limit, and [replica.checkMemory] measures.
func (c *cluster) startLimited(args ...string) (*replica, error) {
	return c.startWithMemory(memoryLimit, args...)
}

// A hierarchy of cgroups is a folder and, in each group, the files of the limits of
// memory and of swap.
type hierarchy struct{ dir, limit, swap string }

// hierarchies are cgroup v2 and v1, where they are mounted as a rule.
var hierarchies = []hierarchy{
	{"/sys/fs/cgroup", "memory.max", "memory.swap.max"},
	{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.swappiness"},
}

// confine puts a process that was just started into a cgroup of that much memory, if there
// are rights to one.
func (r *replica) confine(limit int) {
	for _, h := range hierarchies {
		if _, err := os.Stat(filepath.Join(h.dir, "cgroup.procs")); err != nil {
			continue
		}
		group, err := os.MkdirTemp(h.dir, "sallyport-faults-"+r.Name+"-")
		if err != nil {
			continue
		}
		write := func(file string, value int) error {
			return os.WriteFile(filepath.Join(group, file), []byte(strconv.Itoa(value)), 0o600)
		}
		remove := func() { _ = os.Remove(group) } // of no use, and empty
		_ = write(h.swap, 0)                      // not every kernel counts it
		if write(h.limit, limit) == nil && write("cgroup.procs", r.PID()) == nil {
			r.confined = true
			go func() {
				<-r.Ended
				remove()
			}()
			return
		}
		remove()
	}
}

// peakMemory is the most that the process has had at once, less what of files is mapped:
// the kernel takes that back before it kills.
func (r *replica) peakMemory() (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.PID()))
	if err != nil {
		return 0, err
	}
	kib := map[string]int{"VmHWM": 0, "RssFile": 0}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, ":")
		if _, wanted := kib[name]; wanted {
			if kib[name], err = strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB")); err != nil {
				return 0, err
			}
		}
	}
	if kib["VmHWM"] == 0 {
		return 0, fmt.Errorf("/proc says nothing of the memory of %s", r.Name)
	}
	return (kib["VmHWM"] - kib["RssFile"]) << 10, nil
}

// checkMemory reports a replica that was killed, or has taken more than the limit.
func (r *replica) checkMemory(out *result, limit int) {
	if r.HasEnded() {
		out.problemf("%v", r.Failed())
		return
	}
	peak, err := r.peakMemory()
	switch {
	case err != nil:
		out.problemf("%v", err)
	case peak > limit:
		out.problemf("%s had %d MiB of memory, and has %d", r.Name, peak>>20, limit>>20)
	case !r.confined:
		out.notef("%s had at most %d MiB, and no cgroup", r.Name, peak>>20)
	default:
		out.notef("%s had at most %d MiB", r.Name, peak>>20)
	}
}
