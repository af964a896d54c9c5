// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

var kubernetesVersion = regexp.MustCompile(`^Kubernetes v1\.([0-9]+)\.`)

// KubernetesMinor returns the N of Kubernetes 1.N, the release of the kube-apiserver in the
// folder that KUBEBUILDER_ASSETS names. Tests ask it about what older releases lack, which
// docs/install.md lists.
func KubernetesMinor(t testing.TB) int {
	t.Helper()
	binary := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kube-apiserver")
	out, err := exec.CommandContext(t.Context(), binary, "--version").Output()
	if err != nil {
		t.Fatalf("%s --version: %v", binary, err)
	}
	found := kubernetesVersion.FindSubmatch(out)
	if found == nil {
		t.Fatalf("%s --version says %q", binary, out)
	}
	minor, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return minor
}

// StaticManifests returns the feature gates with which the API server reads webhooks from
// files, and whether it can: beta since Kubernetes 1.37, alpha in 1.36.
func StaticManifests(t testing.TB) (gates string, supported bool) {
	t.Helper()
	switch minor := KubernetesMinor(t); {
	case minor >= 37:
		return "", true
	case minor == 36:
		return "ManifestBasedAdmissionControlConfig=true", true
	default:
		t.Logf("Kubernetes 1.%d does not read webhooks from files: nothing to test of it", minor)
		return "", false
	}
}
