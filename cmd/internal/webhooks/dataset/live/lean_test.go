// SPDX-License-Identifier: Apache-2.0

package live

import (
	"encoding/json"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset"
)

// TestAListIsReadLean checks that only the needed parts of an object are kept, and that
// a malformed object does not break a list.
func TestAListIsReadLean(t *testing.T) {
	const list = `{"apiVersion":"data.fluid.io/v1alpha1","kind":"AlluxioRuntimeList","metadata":{"resourceVersion":"7"},"items":[
		{"apiVersion":"data.fluid.io/v1alpha1","kind":"AlluxioRuntime","metadata":{"name":"a","namespace":"n","resourceVersion":"5","annotations":{"big":"gone"},"managedFields":[{}]},
		 "spec":{"fuse":{"nodeSelector":{"b":"2","a":"1"}}},"status":{"cacheAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"Exists"}]}]}}}},
		{"apiVersion":"data.fluid.io/v1alpha1","kind":"AlluxioRuntime","metadata":{"name":"odd","namespace":"n"},"spec":{"fuse":[1]},"status":"none"}]}`
	scheme := runtime.NewScheme()
	if err := addLean(scheme); err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme).WithoutConversion()
	info := decoder.SupportedMediaTypes()[0] // JSON
	out := &leanList{}
	if _, _, err := info.Serializer.Decode([]byte(list), nil, out); err != nil {
		t.Fatal(err)
	}
	if len(out.Items) != 2 || out.ResourceVersion != "7" {
		t.Fatalf("%+v", out)
	}
	first := out.Items[0]
	if first.ref != (dataset.Ref{Kind: "AlluxioRuntime", Namespace: "n", Name: "a"}) || first.ResourceVersion != "5" || first.Annotations != nil || first.ManagedFields != nil {
		t.Errorf("%+v", first)
	}
	if got := first.object.Runtime; len(got.FuseSelector) != 2 || got.FuseSelector[0].Key != "a" || len(got.Affinity) != 1 || got.Affinity[0].Expressions[0].Key != "k" {
		t.Errorf("%+v", got)
	}
	if odd := out.Items[1].object.Runtime; len(odd.FuseSelector) > 0 || len(odd.Affinity) > 0 {
		t.Errorf("%+v", odd)
	}
	same := out.DeepCopyObject().(*leanList)
	if same.Items[0].ref != first.ref || same.Items[0].object != first.object {
		t.Error("the copy is another")
	}
	var bookmark lean
	if err := json.Unmarshal([]byte(`{"kind":"Dataset","metadata":{"resourceVersion":"9","annotations":{"`+metav1.InitialEventsAnnotationKey+`":"true"}}}`), &bookmark); err != nil ||
		bookmark.ResourceVersion != "9" || bookmark.Annotations[metav1.InitialEventsAnnotationKey] != "true" || bookmark.object != nil {
		t.Errorf("%+v, %v", bookmark, err)
	}
}

// FuzzLean passes any valid JSON to an item of a list: what it keeps has a name.
func FuzzLean(f *testing.F) {
	f.Add([]byte(`{"kind":"Dataset","metadata":{"name":"a","namespace":"n","uid":"u","labels":{"fluid.io/s-n-a":"true"}},"status":{"phase":"Bound","runtimes":[{"type":"thin"}]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !jsontext.Value(raw).IsValid() {
			return
		}
		var l lean
		if err := json.Unmarshal(raw, &l); err == nil && l.object != nil && l.ref.Name == "" {
			t.Fatalf("%+v", l)
		}
	})
}
