// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// memoryLimit is that of the container that `sallyport manifests` prints.
const memoryLimit = 256 << 20

// cgroups is where cgroup v2 is mounted, as a rule.
const cgroups = "/sys/fs/cgroup"

// startLimited is startReplica with the memory that the container has: the kernel kills
// what takes more, where there are rights to cgroup v2. Elsewhere the runtime is told of
// the limit, and [replica.checkMemory] measures.
func (l *lab) startLimited(args ...string) (*replica, error) {
	return l.startReplicaOf(build{binary: l.settings.binary, memory: memoryLimit}, args...)
}

// limitMemory prepares a process that is not to take more. It returns what to do once it
// has ended.
func limitMemory(cmd *exec.Cmd, name string, limit int) (ended func()) {
	// As the container has it: a part is for what Go's runtime does not count.
	cmd.Env = append(os.Environ(), fmt.Sprintf("GOMEMLIMIT=%d", limit/10*9))
	group := filepath.Join(cgroups, fmt.Sprintf("sallyport-faults-%d-%s", os.Getpid(), name))
	if _, err := os.Stat(filepath.Join(cgroups, "cgroup.controllers")); err != nil || os.Mkdir(group, 0o700) != nil {
		return func() {}
	}
	remove := func() { _ = os.Remove(group) } // of no use, and empty
	for file, value := range map[string]string{"memory.max": strconv.Itoa(limit), "memory.swap.max": "0"} {
		if os.WriteFile(filepath.Join(group, file), []byte(value), 0o600) != nil {
			return remove
		}
	}
	dir, err := os.Open(group)
	if err != nil {
		return remove
	}
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	return func() { _ = dir.Close(); remove() }
}

// peakMemory is the most that the process has had at once.
func (p *process) peakMemory() (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("/proc says nothing of the memory of %s", p.name)
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
	default:
		out.notef("%s had at most %d MiB", r.name, peak>>20)
	}
}
