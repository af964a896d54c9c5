// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Command returns the path of a command of this repository in bin/, as `make build` builds
// it, from the folder of its package: "cmd/sallyport". What is up to date is not built again,
// so all test packages of a run share one build; a lock keeps them from building it at once.
func Command(t testing.TB, folder string) string {
	t.Helper()
	top, err := Top()
	if err != nil {
		t.Fatal(err)
	}
	defer lock(t, top)()
	binary := filepath.Join(top, "bin", filepath.Base(folder))
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-tags", "grpcnotrace", "-o", binary, "./"+folder)
	build.Dir = top
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", folder, err, out)
	}
	return binary
}

// Tool returns the path of a tool that the go.mod in a folder pins: ("tools/deploy", "helm").
// The go command keeps what it builds in its cache; a lock keeps test packages from building
// it at once.
func Tool(t testing.TB, folder, name string) string {
	t.Helper()
	top, err := Top()
	if err != nil {
		t.Fatal(err)
	}
	defer lock(t, top)()
	path, err := exec.CommandContext(t.Context(), "go", "tool", "-modfile="+filepath.Join(top, folder, "go.mod"), "-n", name).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("building %s: %v\n%s", name, err, exit.Stderr)
		}
		t.Fatalf("building %s: %v", name, err)
	}
	return strings.TrimSpace(string(path))
}

// lock waits until no other test builds anything.
func lock(t testing.TB, top string) (unlock func()) {
	t.Helper()
	bin := filepath.Join(top, "bin")
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
			strings.HasPrefix(string(text), "module github.com/sallyport-io/sallyport\n") {
			return folder, nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", errors.New("this does not run in a folder of the repository")
		}
		folder = parent
	}
}
