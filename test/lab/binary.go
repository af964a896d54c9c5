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

// StartBinary starts a part of Kubernetes until the test ends, which may not end before.
// It is the one of the folder that KUBEBUILDER_ASSETS names or, if it is not there, one that
// is built for this test, once, in the folder of test/controlplane.
func StartBinary(t *testing.T, folder, name string, args ...string) {
	t.Helper()
	StartUntilEnd(t, Program{Name: name, Path: controlPlaneBinary(t, folder, name), Args: args, Dir: t.TempDir()})
}

func controlPlaneBinary(t *testing.T, folder, name string) string {
	t.Helper()
	path := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	build := exec.CommandContext(t.Context(), "go", "run", ".", name)
	build.Dir = folder
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "KUBEBUILDER_ASSETS=") {
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
