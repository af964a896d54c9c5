// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestChangesForArtifactHubAreThoseOfTheChangelog(t *testing.T) {
	got := hubChanges("There is more.\n\n### Added\n\nA group:\n\n- `a` is **new**. See\n  [docs](docs/a.md#b).\n- b\n\nText.\n  more text\n\n### Security\n\n- c\n\n### Other\n- d\n")
	want := []hubChange{{"added", "a is new. See docs."}, {"added", "b"}, {"security", "c"}, {"changed", "d"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestTheChartHasWhatArtifactHubReads has the rules of `ah lint`, which is no dependency of ours.
func TestTheChartHasWhatArtifactHubReads(t *testing.T) {
	s := try(t)
	s.version, s.repository = "v0.0.0-1-gabc", "registry.example.com/sallyport"
	annotations, err := s.artifactHub()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(s.top, "charts/sallyport"))); err != nil {
		t.Fatal(err)
	}
	if err := annotate(folder, annotations); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var chart struct {
		Name, KubeVersion, Description string
		Annotations                    map[string]string
	}
	if err := yaml.Unmarshal(text, &chart); err != nil {
		t.Fatal(err)
	}
	if chart.Name != "sallyport" || chart.KubeVersion == "" || chart.Description == "" {
		t.Errorf("the chart has lost something: %+v", chart)
	}
	read := func(name string, into any) {
		t.Helper()
		if err := yaml.UnmarshalStrict([]byte(chart.Annotations["artifacthub.io/"+name]), into); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var definitions []hubDefinition
	var images []hubImage
	var changes []hubChange
	var links []hubLink
	var examples []map[string]any
	read("crds", &definitions)
	read("images", &images)
	read("changes", &changes)
	read("links", &links)
	read("crdsExamples", &examples)
	if len(definitions) != 5 || len(examples) != 1 || len(links) == 0 || len(changes) == 0 {
		t.Errorf("%d definitions, %d examples, %d links, %d changes", len(definitions), len(examples), len(links), len(changes))
	}
	kinds := map[string]bool{}
	for _, d := range definitions {
		if kinds[d.Kind] = true; d.Kind == "" || d.Version == "" || d.Name == "" || d.Description == "" {
			t.Errorf("incomplete: %+v", d)
		}
	}
	if kind, _ := examples[0]["kind"].(string); !kinds[kind] {
		t.Errorf("an example of %q, which is not defined", kind)
	}
	for _, c := range changes {
		if !slices.Contains([]string{"added", "changed", "deprecated", "removed", "fixed", "security"}, c.Kind) || c.Description == "" || strings.ContainsAny(c.Description, "`") {
			t.Errorf("an invalid change: %+v", c)
		}
	}
	if len(images) != 1 || images[0].Image != "registry.example.com/sallyport:v0.0.0-1-gabc" || !slices.Equal(images[0].Platforms, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("images: %+v", images)
	}
	for _, link := range links { // to files at the tag: they have to be there
		if _, path, ok := strings.Cut(link.URL, "/blob/"+s.version+"/"); ok {
			if _, err := os.Stat(filepath.Join(s.top, path)); err != nil {
				t.Error(err)
			}
		}
	}
	if a := chart.Annotations; a["artifacthub.io/prerelease"] != "true" || a["artifacthub.io/license"] != "Apache-2.0" || a["artifacthub.io/category"] != "security" {
		t.Errorf("annotations: %v", a)
	}
}
