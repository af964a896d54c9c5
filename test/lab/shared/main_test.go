// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/test/lab"
)

func TestACommandSharesAnAPIServerOnARealAPIServer(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // for what must not be left behind
	t.Setenv(lab.SharedVariable, "")
	seen := filepath.Join(t.TempDir(), "seen")
	kubectl := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl")
	status, err := run([]string{"sh", "-c", kubectl + ` --kubeconfig "$` + lab.SharedVariable + `" create namespace a > ` + seen + `; exit 7`})
	if status != 7 || err != nil {
		t.Errorf("status %d, %v; want the command's, which is 7", status, err)
	}
	if text, err := os.ReadFile(seen); err != nil || !strings.Contains(string(text), "namespace/a created") {
		t.Errorf("the command sees %q, %v", text, err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if status, err := run([]string{"no-such-program"}); status != 1 || err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("a program that is not there: status %d, %v", status, err)
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	if status, err := run(nil); status != 1 || err == nil || !strings.Contains(err.Error(), "usage") {
		t.Errorf("without a command: status %d, %v", status, err)
	}
	t.Setenv("KUBEBUILDER_ASSETS", "")
	if status, err := run([]string{"true"}); status != 1 || err == nil || !strings.Contains(err.Error(), "make controlplane") {
		t.Errorf("without an API server: status %d, %v", status, err)
	}
}
