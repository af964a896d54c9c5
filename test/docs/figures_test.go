// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestTheComparisonHasTheFiguresOfTheREADME: what README.md says of several runs holds for
// the run that the comparison shows, and the comparison repeats no other figures.
func TestTheComparisonHasTheFiguresOfTheREADME(t *testing.T) {
	words := func(document string) string {
		return strings.Join(strings.Fields(read(t, filepath.Join(root, document))), " ")
	}
	claim := regexp.MustCompile(`Sallyport takes ([0-9.]+) to ([0-9.]+) times the processor time of the cheapest server, and controller-runtime about ([0-9.]+) times; ` +
		`with ten thousand PodDefaults in the namespace Sallyport takes ([0-9.]+) to ([0-9.]+) times`).FindStringSubmatch(words("README.md"))
	if claim == nil {
		t.Fatal("README.md does not say how long a review takes, or says it otherwise")
	}
	comparison := words("docs/comparison.md")
	row := func(name string, column int) float64 {
		t.Helper()
		_, cells, ok := strings.Cut(comparison, "| "+name+" |")
		if !ok {
			t.Fatalf("docs/comparison.md has no row %q", name)
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(strings.Split(cells, "|")[column]), 64)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	number := func(text string) float64 {
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	few, many := "notebook pod, 11 PodDefaults, 1 matches", "notebook pod, 10,000 PodDefaults, 1 matches"
	for _, c := range []struct {
		name        string
		got, lo, hi float64
	}{
		{few, row(few, 2), number(claim[1]), number(claim[2])},
		{few + ", by controller-runtime", row(few, 1), 0.9 * number(claim[3]), 1.1 * number(claim[3])},
		{many, row(many, 2), number(claim[4]), number(claim[5])},
	} {
		if c.got < c.lo || c.got > c.hi {
			t.Errorf("%s: docs/comparison.md says %v, README.md %v to %v", c.name, c.got, c.lo, c.hi)
		}
	}
	if repeated := "[" + claim[1] + " to " + claim[2] + " and " + claim[4] + " to " + claim[5] + " times](../README.md#"; !strings.Contains(comparison, repeated) {
		t.Errorf("docs/comparison.md does not repeat what README.md says: %s", repeated)
	}
}

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
	doctor := read(t, filepath.Join(root, "internal/doctor/apiserver.go"))
	if !strings.Contains(doctor, `oldestSupported = "`+supported[1]+`.0"`) {
		t.Errorf("doctor finds another release than %s too old", supported[1])
	}
}
