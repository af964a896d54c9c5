// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"math"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
)

// limit sets the garbage collector's memory limit to nine tenths of the container's, so
// that a process near the limit collects garbage instead of being OOM-killed. Limits on bodies
// and connections follow from it. The limit comes from the kernel, so it does not depend on how
// the container was installed. A GOMEMLIMIT set by the user takes precedence.
func limit() {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if limit := cgroupLimit("/"); limit < math.MaxInt64 {
		debug.SetMemoryLimit(limit / 10 * 9)
	}
}

// cgroupLimit returns the lowest memory limit of the process's control group and its parents,
// cgroup v1 or v2; math.MaxInt64 if there is none. A container sees its own group as the root
// of the file system.
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
				limit = min(limit, n) // v1 reports a huge number if there is no limit
			}
			if group == "/" {
				break
			}
		}
	}
	return limit
}
