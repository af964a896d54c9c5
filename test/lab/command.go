// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Command returns the path of a command of this repository in bin/, as `make build` builds
// it, from the folder of its package: "cmd/sallyport". What is up to date is not built again,
// so all test packages of a run share one build; a lock keeps them from building it at once.
func Command(t testing.TB, folder string) string {
	t.Helper()
	return Commands(t, folder)[filepath.Base(folder)]
}

// Commands is [Command] for several at once, by their names: most of what it takes the go
// command to see that they are up to date, it does once.
func Commands(t testing.TB, folders ...string) (paths map[string]string) {
	t.Helper()
	top, err := Top()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(top, "bin")
	built.Lock()
	defer built.Unlock()
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-tags", "grpcnotrace", "-o", bin+string(filepath.Separator))
	build.Dir = top
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	paths = map[string]string{}
	for _, folder := range folders {
		paths[filepath.Base(folder)] = filepath.Join(bin, filepath.Base(folder))
		if !built.folders.Has(folder) {
			build.Args = append(build.Args, "./"+folder)
		}
	}
	if built.folders.HasAll(folders...) {
		return paths
	}
	defer lock(t, bin)()
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", strings.Join(folders, ", "), err, out)
	}
	built.folders.Insert(folders...)
	return paths
}

// built is what this process has built: tests of a package share that too, since it takes the go
// command a second to see that something is up to date.
var built = struct {
	sync.Mutex
	folders sets.Set[string]
}{folders: sets.New[string]()}

// lock waits until no other test builds anything.
func lock(t testing.TB, bin string) (unlock func()) {
	t.Helper()
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(bin, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return func() { _ = file.Close() } // which unlocks it
}

// Top is the root of the repository, seen from a folder in it.
func Top() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if text, err := os.ReadFile(filepath.Join(folder, "go.mod")); err == nil &&
			strings.Contains(string(text), "\nmodule github.com/sallyport-io/sallyport\n") {
			return folder, nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", errors.New("this does not run in a folder of the repository")
		}
		folder = parent
	}
}
