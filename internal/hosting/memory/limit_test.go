// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

func TestTheLeastLimitOfTheControlGroupsCounts(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"a container of version 2": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "268435456\n"}, 256 << 20},
		"a group above has less": {map[string]string{
			"proc/self/cgroup": "0::/kubepods/pod1/c\n", "sys/fs/cgroup/kubepods/pod1/memory.max": "1000\n", "sys/fs/cgroup/kubepods/pod1/c/memory.max": "2000\n",
		}, 1000},
		"no limit":  {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, math.MaxInt64},
		"version 1": {map[string]string{"proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/x\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "3000\n"}, 3000},
		"no Linux":  {nil, math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, content := range c.files {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(root, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := cgroupLimit(root); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}
