// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

func TestAnIndexCountsWhatItHolds(t *testing.T) {
	x := NewIndex()
	ref := func(kind Kind, name string) Ref { return Ref{kind, "team-" + name, name} }
	object := &Object{Dataset: &Dataset{}, Claim: &Claim{}}
	x.Set(ref(DatasetKind, "a"), object)
	x.Set(ref(DatasetKind, "a"), object)
	x.Set(ref(ClaimKind, "a"), object)
	x.Replace(DatasetKind, map[Ref]*Object{ref(DatasetKind, "b"): object, ref(DatasetKind, "c"): object})
	x.Delete(ref(DatasetKind, "c"))
	x.Delete(ref(DatasetKind, "never there"))
	if x.Count(DatasetKind) != 1 || x.Count(ClaimKind) != 1 {
		t.Errorf("it holds %d Datasets and %d claims", x.Count(DatasetKind), x.Count(ClaimKind))
	}
	if found, err := x.Find(t.Context(), ref(DatasetKind, "a"), false); found != nil || err != nil {
		t.Errorf("one that was replaced is found: %+v, %v", found, err)
	}
	if got := x.datasetNamespaces(); !slices.Equal(got, []string{"team-b"}) {
		t.Errorf("Datasets are in %v", got)
	}
}

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
	if first.ref != (Ref{"AlluxioRuntime", "n", "a"}) || first.ResourceVersion != "5" || first.Annotations != nil || first.ManagedFields != nil {
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

func TestALongMessageIsCut(t *testing.T) {
	raw := `{"metadata":{"name":"a"},"status":{"conditions":[{"type":"NotReady","message":"` + strings.Repeat("é", maxMessage) + `"}]}}`
	_, object, err := Parse(DatasetKind, []byte(raw))
	if err != nil || len(object.Dataset.NotReady) > maxMessage+4 || !strings.HasSuffix(object.Dataset.NotReady, "é…") {
		t.Errorf("%d bytes, %v", len(object.Dataset.NotReady), err)
	}
}

// FuzzParse passes any valid JSON to Parse for each kind. It returns an object or an
// error, and the same result for the same bytes.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"a","namespace":"n","uid":"u","labels":{"fluid.io/s-n-a":"true"}},"spec":{"fuse":{"nodeSelector":{"a":"b"}}},"status":{"phase":"Bound","runtimes":[{"type":"thin"}]}}`))
	f.Add([]byte(`{"metadata":{"name":"a"},"status":{"cacheAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"In","values":["v"]}]}]}}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !jsontext.Value(raw).IsValid() {
			return
		}
		for kind := range Kinds() {
			ref, object, err := Parse(kind, raw)
			if (object == nil) == (err == nil) || err == nil && ref.Name == "" {
				t.Fatalf("%s: %v, %+v, %v", kind, ref, object, err)
			}
			var l lean
			if err := json.Unmarshal(raw, &l); err == nil && l.object != nil && l.ref.Name == "" {
				t.Fatalf("%+v", l)
			}
		}
	})
}
