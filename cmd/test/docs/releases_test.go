// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestTheOldestReleaseOfKubernetesIsTheSameEverywhere: Helm refuses what is not supported,
// and nothing else.
func TestTheOldestReleaseOfKubernetesIsTheSameEverywhere(t *testing.T) {
	supported := regexp.MustCompile(`Sallyport supports ([0-9.]+) to ([0-9.]+)\.`).FindStringSubmatch(read(t, filepath.Join(root, "docs/install.md")))
	if supported == nil {
		t.Fatal("docs/install.md does not say which releases of Kubernetes are supported")
	}
	var chart struct {
		KubeVersion string `json:"kubeVersion"`
	}
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(root, "charts/sallyport/Chart.yaml"))), &chart); err != nil {
		t.Fatal(err)
	}
	if want := ">=" + supported[1] + ".0-0"; chart.KubeVersion != want {
		t.Errorf("the chart is for Kubernetes %s, docs/install.md says %s", chart.KubeVersion, want)
	}
	doctor := read(t, filepath.Join(root, "cmd/internal/live/doctor/apiserver.go"))
	if !strings.Contains(doctor, `oldestSupported = "`+supported[1]+`.0"`) {
		t.Errorf("doctor finds another release than %s too old", supported[1])
	}
}
