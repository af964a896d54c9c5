// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podtest"
	"github.com/sallyport-io/sallyport/test/cases"
)

// TestCases runs the cases of testdata. The cluster's objects may include
// ClusterPodDefaults and Namespaces. Their order makes no difference.
func TestCases(t *testing.T) {
	over := func(backwards bool) cases.Make {
		return func(t testing.TB, _, cluster []byte) []admission.Webhook {
			index := parseIndex(t, cluster, backwards)
			webhook, err := New(index, DefaultSettings())
			forExcluded, errExcluded := NewExcluded(index, DefaultSettings())
			if err := errors.Join(err, errExcluded); err != nil {
				t.Fatal(err)
			}
			return []admission.Webhook{webhook, forExcluded}
		}
	}
	cases.Run(t, podResource, over(false), over(true))
}

// TestUntouchedPodsGetNoPatch covers pods that the webhook must not change, whatever
// the PodDefaults.
func TestUntouchedPodsGetNoPatch(t *testing.T) {
	everything := podtest.PodDefaults(t, []byte(`
metadata: {name: everything}
spec:
  selector: {}
  env: [{name: A, value: b}]
`))
	for name, metadata := range map[string]map[string]any{
		"a pod with the exclude annotation":        {"annotations": map[string]string{meta.ExcludeAnnotation: "true"}},
		"a mirror pod":                             {"annotations": map[string]string{meta.MirrorAnnotation: "any"}},
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
		raw := []byte(`{"metadata":{"annotations":{"` + meta.ExcludeAnnotation + `":"yes"}},"spec":{"containers":[{"name":"c"}]}}`)
		if resp := handle(t, raw, everything...); len(resp.Patch) == 0 {
			t.Error("the pod was left alone")
		}
	})
}
