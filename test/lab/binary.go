// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// StartBinary starts a part of Kubernetes, which is that of [Binary], until the test ends. It
// may not end before.
func StartBinary(t *testing.T, name string, args ...string) {
	t.Helper()
	StartUntilEnd(t, Program{Name: name, Path: Binary(t, name), Args: args, Dir: t.TempDir()})
}

// Binary returns the path of a program that test/controlplane pins: a part of Kubernetes, or
// one that installs. It is in the folder that KUBEBUILDER_ASSETS names or, if it is not there,
// in the cache of test/controlplane, which builds it once.
func Binary(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	top, err := Top()
	if err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "run", ".", name)
	build.Dir = filepath.Join(top, "test/controlplane")
	build.Env = []string{"GOWORK=off"}
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "KUBEBUILDER_ASSETS=") && !strings.HasPrefix(variable, "GOWORK=") {
			build.Env = append(build.Env, variable)
		}
	}
	var messages bytes.Buffer
	build.Stderr = &messages
	out, err := build.Output()
	if err != nil {
		t.Fatalf("building %s: %v\n%s", name, err, &messages)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return filepath.Join(lines[len(lines)-1], name)
}
