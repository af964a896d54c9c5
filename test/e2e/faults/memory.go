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
	return c.startReplicaOf(build{binary: c.settings.binary, memory: memoryLimit}, args...)
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
// are rights to one. It returns what to do once the process has ended.
func (p *process) confine(limit int) (ended func()) {
	for _, h := range hierarchies {
		if _, err := os.Stat(filepath.Join(h.dir, "cgroup.procs")); err != nil {
			continue
		}
		group, err := os.MkdirTemp(h.dir, "sallyport-faults-"+p.name+"-")
		if err != nil {
			continue
		}
		write := func(file string, value int) error {
			return os.WriteFile(filepath.Join(group, file), []byte(strconv.Itoa(value)), 0o600)
		}
		remove := func() { _ = os.Remove(group) } // of no use, and empty
		_ = write(h.swap, 0)                      // not every kernel counts it
		if write(h.limit, limit) == nil && write("cgroup.procs", p.cmd.Process.Pid) == nil {
			p.confined = true
			return remove
		}
		remove()
	}
	return func() {}
}

// peakMemory is the most that the process has had at once, less what of files is mapped:
// the kernel takes that back before it kills.
func (p *process) peakMemory() (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
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
		return 0, fmt.Errorf("/proc says nothing of the memory of %s", p.name)
	}
	return (kib["VmHWM"] - kib["RssFile"]) << 10, nil
}

// checkMemory reports a replica that was killed, or has taken more than the limit.
func (r *replica) checkMemory(out *result, limit int) {
	if r.hasEnded() {
		out.problemf("%s ended: %v", r.name, r.err)
		return
	}
	peak, err := r.peakMemory()
	switch {
	case err != nil:
		out.problemf("%v", err)
	case peak > limit:
		out.problemf("%s had %d MiB of memory, and has %d", r.name, peak>>20, limit>>20)
	case !r.confined:
		out.notef("%s had at most %d MiB, and no cgroup", r.name, peak>>20)
	default:
		out.notef("%s had at most %d MiB", r.name, peak>>20)
	}
}
