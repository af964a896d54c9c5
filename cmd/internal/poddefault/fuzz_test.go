// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"encoding/json"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	jsonpatchv4 "gopkg.in/evanphx/json-patch.v4"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podtest"
	"github.com/sallyport-io/sallyport/test/cases"
)

// FuzzMerge sends any valid JSON as a pod, with any PodDefault. The handler must not
// panic, its patch must apply, and the result must not change again.
func FuzzMerge(f *testing.F) {
	for _, c := range cases.All(f) {
		for _, document := range podtest.SplitYAML(f, c.File("cluster.yaml")) {
			f.Add(c.Request(f, podResource).Object.Raw, podtest.ToJSON(f, document))
		}
	}
	f.Fuzz(func(t *testing.T, pod, podDefault []byte) {
		if !jsontext.Value(pod).IsValid() { // the wire lets nothing else through
			return
		}
		pd := &kubeflowv1alpha1.PodDefault{}
		if json.Unmarshal(podDefault, pd) != nil {
			return
		}
		pd.Namespace, pd.Name, pd.ResourceVersion = podtest.Namespace, "fuzzed", "1"
		pd.Spec.Selector.MatchLabels, pd.Spec.Selector.MatchExpressions = nil, nil
		resp := handle(t, pod, pd)
		if !resp.Allowed || len(resp.Patch) == 0 {
			return
		}
		patch, err := jsonpatchv4.DecodePatch(resp.Patch.AppendJSON(nil))
		if err != nil {
			t.Fatal(err)
		}
		after, err := patch.Apply(pod)
		if err != nil {
			t.Fatalf("%v\npod %s\npatch %s", err, pod, resp.Patch.AppendJSON(nil))
		}
		if again := handle(t, after, pd); !again.Allowed || len(again.Patch) > 0 {
			t.Fatalf("the second pass is not empty: %+v %s\npod %s", again.Status, again.Patch.AppendJSON(nil), pod)
		}
	})
}
