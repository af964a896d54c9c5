// SPDX-License-Identifier: Apache-2.0

package scripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// runScript runs a script like a container, with this mountinfo. It replaces sleep with
// a command and tries twice.
func runScript(t *testing.T, text, mountinfo, sleep string, args ...string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "mountinfo")
	if err := os.WriteFile(file, []byte(mountinfo), 0o600); err != nil {
		t.Fatal(err)
	}
	text = strings.NewReplacer("/proc/self/mountinfo", file, "-ge "+maxTries, "-ge 2", "sleep 1", sleep).Replace(text)
	out, err := exec.CommandContext(t.Context(), "sh", append([]string{"-euc", text, "script"}, args...)...).CombinedOutput()
	return string(out), err
}

func TestContainersWaitForWhatIsMountedAndNotForItsName(t *testing.T) {
	const (
		fuse    = "36 35 0:9 / /mnt/0 rw,nosuid shared:1 master:2 - fuse.juicefs JuiceFS:data rw\n"
		nfs     = "36 35 0:9 / /mnt/0 rw - nfs4 server:/x rw\n"
		folder  = "36 35 8:1 /runtime-mnt/juicefs/team-a/data/juicefs-fuse /mnt/0 rw - ext4 /dev/fuse-disk rw\n"
		other   = "36 35 0:9 / /mnt/0/below rw - fuse.juicefs x rw\n36 35 0:9 / /mnt/00 rw - fuse x rw\n"
		another = "36 35 0:9 / /my\\040data rw - fuse x rw\n"
	)
	for name, c := range map[string]struct {
		mountinfo, folders, kinds string
		mounted                   bool
	}{
		"a fuse":                               {fuse, "/mnt/0", "alluxio", true},
		"no kind is known":                     {fuse, "/mnt/0", "", true},
		"a file system of the kind":            {nfs, "/mnt/0", "nfs", true},
		"a file system of another kind":        {nfs, "/mnt/0", "juicefs", false},
		"a folder with fuse in its name":       {folder, "/mnt/0", "juicefs", false},
		"a folder that a fuse is mounted over": {folder + fuse, "/mnt/0", "juicefs", true},
		"other folders":                        {other, "/mnt/0", "juicefs", false},
		"one of two":                           {fuse, "/mnt/0:/mnt/1", "juicefs:juicefs", false},
		"two":                                  {fuse + other, "/mnt/0:/mnt/00", "juicefs:juicefs", true},
		"a folder with a blank":                {another, Escapes.Replace("/my data"), "juicefs", true},
	} {
		t.Run(name, func(t *testing.T) {
			if out, err := runScript(t, appText, c.mountinfo, ":", c.folders, c.kinds); (err == nil) != c.mounted {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

func TestASidecarWaitsForItsMountAndTheFolderInIt(t *testing.T) {
	at := filepath.Join(t.TempDir(), "juicefs", "data") // as the host's path has the kind, too
	mounted := "36 35 0:9 / " + at + "/juicefs-fuse rw shared:1 - fuse.juicefs JuiceFS:data rw\n"
	later := "mkdir -p '" + at + "/juicefs-fuse/models'"
	if err := os.MkdirAll(filepath.Join(at, "juicefs-fuse"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, mountinfo, sleep, subPath string
		ready                           bool
	}{
		{"a name in a path is no mount", "36 35 8:1 /juicefs-fuse " + at + " rw - ext4 /dev/fuse rw\n", ":", "", false},
		{"all of it", mounted, ":", "", true},
		{"a folder that never comes", mounted, ":", "models", false},
		{"a folder that comes later", mounted, later, "models", true},
		{"a folder that is there", mounted, ":", "models", true},
		{"a folder below no mount", "", ":", "models", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if out, err := runScript(t, fuseText, c.mountinfo, c.sleep, at, "juicefs", c.subPath); (err == nil) != c.ready {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
