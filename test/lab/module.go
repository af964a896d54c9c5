// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// ModuleFile returns the path of a file of a Go module that this one requires.
func ModuleFile(t testing.TB, module, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatalf("the folder of module %s: %v", module, err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), name)
}

// ReportsCRD is the definition of reports that OpenReports publishes.
func ReportsCRD(t testing.TB) string {
	t.Helper()
	return ModuleFile(t, "github.com/openreports/reports-api", "config/crd/openreports.io_reports.yaml")
}
