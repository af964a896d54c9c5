// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/test/golden"
)

// TestExamplesOfFieldsAreTestCases holds that what docs/poddefault.md shows of a field is
// a part of the objects in the case that it links to, and that each field is shown.
func TestExamplesOfFieldsAreTestCases(t *testing.T) {
	_, text, _ := strings.Cut(read(t, filepath.Join(root, "docs", "poddefault.md")), "\n## Examples\n")
	text, _, _ = strings.Cut(text, "\n## ")
	examples := regexp.MustCompile("(?s)\\]\\(\\.\\./(cmd/internal/poddefault/testdata/[a-z-]+\\.txtar)\\)\n\n```yaml\n(.*?)```").FindAllStringSubmatch(text, -1)
	if len(examples) != strings.Count(text, "```yaml") {
		t.Fatalf("%d examples with a link to their case, of %d", len(examples), strings.Count(text, "```yaml"))
	}
	shown := map[string]bool{}
	for _, example := range examples {
		path, yaml := filepath.Join(root, example[1]), example[2]
		indented := "  " + strings.TrimSuffix(strings.ReplaceAll(yaml, "\n", "\n  "), "  ")
		if !strings.Contains("\n"+string(golden.Open(t, path).File("cluster.yaml")), "\n"+indented) {
			t.Errorf("%s does not hold\n%s", path, indented)
		}
		for _, m := range regexp.MustCompile(`(?m)^([a-zA-Z]+):`).FindAllStringSubmatch(yaml, -1) {
			shown[m[1]] = true
		}
	}
	for _, spec := range []reflect.Type{reflect.TypeFor[kubeflowv1alpha1.PodDefaultSpec](), reflect.TypeFor[sallyportv1alpha1.ClusterPodDefaultSpec]()} {
		for i := range spec.NumField() {
			name, _, _ := strings.Cut(spec.Field(i).Tag.Get("json"), ",")
			if name != "" && !shown[name] {
				t.Errorf("no example shows spec.%s", name)
			}
		}
	}
}
