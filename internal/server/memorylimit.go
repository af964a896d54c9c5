// SPDX-License-Identifier: Apache-2.0

package server

import (
	"math"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
)

// limitMemory tells the garbage collector nine tenths of what the container may take, so
// that a process which comes close collects garbage rather than being killed; limits on
// bodies and connections follow from it. The kernel knows the container's limit, however
// it was installed. Somebody who sets GOMEMLIMIT knows better, and is left alone.
func limitMemory() {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if limit := cgroupLimit("/"); limit < math.MaxInt64 {
		debug.SetMemoryLimit(limit / 10 * 9)
	}
}

// cgroupLimit is the least memory limit of the process's control group and of those that
// it is in, version 2 or 1; math.MaxInt64 if there is none. A container sees its own group
// as the root of the file system.
func cgroupLimit(root string) int64 {
	limit := int64(math.MaxInt64)
	groups, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return limit
	}
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		mount, file := "sys/fs/cgroup", "memory.max"
		if parts[1] == "memory" {
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		} else if parts[1] != "" {
			continue
		}
		for group := path.Clean("/" + parts[2]); ; group = path.Dir(group) {
			text, err := os.ReadFile(filepath.Join(root, mount, group, file))
			if n, parseErr := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && parseErr == nil && n > 0 {
				limit = min(limit, n) // version 1 has a huge number where there is no limit
			}
			if group == "/" {
				break
			}
		}
	}
	return limit
}
