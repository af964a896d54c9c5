// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write what comes out to testdata/*/want.*")

// TestCases runs every folder of testdata: pod.yaml and poddefaults.yaml, which may hold
// ClusterPodDefaults and Namespaces too, go in; want.yaml is the pod that must come out, want.txt the message of a denial. Lines
// of either that begin with "# warning: " are the warnings.
func TestCases(t *testing.T) {
	folders, err := filepath.Glob("testdata/*/pod.yaml")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no cases in testdata (%v)", err)
	}
	for _, folder := range folders {
		name := filepath.Base(filepath.Dir(folder))
		t.Run(strings.ReplaceAll(name, "-", " "), func(t *testing.T) {
			raw := toJSON(t, readTestdata(t, name, "pod.yaml"))
			objects := readTestdata(t, name, "poddefaults.yaml")
			resp := handleFrom(t, raw, parseIndex(t, objects, false))
			if other := handleFrom(t, raw, parseIndex(t, objects, true)); !cmp.Equal(resp, other) {
				t.Errorf("the order in which objects come makes a difference:\n%s", cmp.Diff(resp, other))
			}

			var warnings strings.Builder
			for _, warning := range resp.Warnings {
				warnings.WriteString("# warning: " + warning + "\n")
			}
			if !resp.Allowed {
				compare(t, filepath.Join("testdata", name, "want.txt"), warnings.String()+resp.Status.Message+"\n")
				return
			}
			after := apply(t, raw, resp)
			out, err := yaml.JSONToYAML(after)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, filepath.Join("testdata", name, "want.yaml"), warnings.String()+string(out))
			checkOrigins(t, after, resp)

			if again := handleFrom(t, after, parseIndex(t, objects, false)); !again.Allowed || len(again.Patch) > 0 {
				t.Errorf("the second pass is not empty: %+v %s", again.Status, again.Patch.AppendJSON(nil))
			}
		})
	}
}

func compare(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; got\n%s", err, got)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// TestUntouchedPodsGetNoPatch covers what the webhook must leave alone whatever
// PodDefaults there are.
func TestUntouchedPodsGetNoPatch(t *testing.T) {
	everything := parsePodDefaults(t, []byte(`
metadata: {name: everything}
spec:
  selector: {}
  env: [{name: A, value: b}]
`))
	for name, metadata := range map[string]map[string]any{
		"a pod with the exclude annotation":        {"annotations": map[string]string{ExcludeAnnotation: "true"}},
		"a mirror pod":                             {"annotations": map[string]string{MirrorAnnotation: "any"}},
		"a pod of a namespace without PodDefaults": {"namespace": "elsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(map[string]any{"metadata": metadata, "spec": map[string]any{"containers": []any{map[string]any{"name": "c"}}}})
			if err != nil {
				t.Fatal(err)
			}
			if resp := handle(t, raw, everything...); !resp.Allowed || len(resp.Patch) > 0 {
				t.Errorf("got %+v", resp)
			}
		})
	}
	t.Run("the exclude annotation counts only with the value true", func(t *testing.T) {
		raw := []byte(`{"metadata":{"annotations":{"` + ExcludeAnnotation + `":"yes"}},"spec":{"containers":[{"name":"c"}]}}`)
		if resp := handle(t, raw, everything...); len(resp.Patch) == 0 {
			t.Error("the pod was left alone")
		}
	})
}
