// SPDX-License-Identifier: Apache-2.0

package staticmanifests_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-io/sallyport/internal/hosting/staticmanifests"
	"github.com/sallyport-io/sallyport/internal/registration"
)

func TestStaticManifestsAreRemovedIfTheyAreOurs(t *testing.T) {
	directory := t.TempDir()
	ours := "metadata:\n  labels: {app.kubernetes.io/managed-by: sallyport}\n"
	mutating := filepath.Join(directory, "mutating", "web.static.k8s.io.yaml")
	validating := filepath.Join(directory, "validating", "web.static.k8s.io.yaml")
	for path, content := range map[string]string{mutating: ours, validating: "metadata: {}\n"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := []registration.Removal{
		{Object: mutating, Action: registration.Deleted},
		{Object: validating, Action: registration.Left, Why: "its object does not have the label app.kubernetes.io/managed-by=sallyport"},
	}
	for _, dryRun := range []bool{true, false} {
		got, err := staticmanifests.Remove(directory, registration.RemoveOptions{Name: "web", DryRun: dryRun})
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v, removals (-want +got):\n%s", err, diff)
		}
		if _, err := os.Stat(mutating); (err == nil) != dryRun {
			t.Errorf("dry run %v: %v", dryRun, err)
		}
	}
	if _, err := staticmanifests.Remove("here", registration.RemoveOptions{Name: "web"}); err == nil {
		t.Error("a relative directory is accepted")
	}
}
