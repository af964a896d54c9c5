// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/kinds"
)

func TestAnIndexCountsWhatItHolds(t *testing.T) {
	x := NewIndex()
	ref := func(kind kinds.Kind, name string) Ref { return Ref{kind, "team-" + name, name} }
	object := &Object{Dataset: &Dataset{}, Claim: &Claim{}}
	x.Set(ref(kinds.Dataset, "a"), object)
	x.Set(ref(kinds.Dataset, "a"), object)
	x.Set(ref(kinds.Claim, "a"), object)
	x.Replace(kinds.Dataset, map[Ref]*Object{ref(kinds.Dataset, "b"): object, ref(kinds.Dataset, "c"): object})
	x.Delete(ref(kinds.Dataset, "c"))
	x.Delete(ref(kinds.Dataset, "never there"))
	if x.Count(kinds.Dataset) != 1 || x.Count(kinds.Claim) != 1 {
		t.Errorf("it holds %d Datasets and %d claims", x.Count(kinds.Dataset), x.Count(kinds.Claim))
	}
	if found, err := x.Find(t.Context(), ref(kinds.Dataset, "a"), false); found != nil || err != nil {
		t.Errorf("one that was replaced is found: %+v, %v", found, err)
	}
	if got := x.DatasetNamespaces(); !slices.Equal(got, []string{"team-b"}) {
		t.Errorf("Datasets are in %v", got)
	}
}

func TestALongMessageIsCut(t *testing.T) {
	raw := `{"metadata":{"name":"a"},"status":{"conditions":[{"type":"NotReady","message":"` + strings.Repeat("é", maxMessage) + `"}]}}`
	_, object, err := Parse(kinds.Dataset, []byte(raw))
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
		for kind := range kinds.All() {
			ref, object, err := Parse(kind, raw)
			if (object == nil) == (err == nil) || err == nil && ref.Name == "" {
				t.Fatalf("%s: %v, %+v, %v", kind, ref, object, err)
			}
		}
	})
}
