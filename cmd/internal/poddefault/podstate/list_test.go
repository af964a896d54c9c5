// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// TestAListThatIsLookedThroughIsAsOneThatIsRead adds variables to lists that have some of them, have
// them as other texts, or have none.
func TestAListThatIsLookedThroughIsAsOneThatIsRead(t *testing.T) {
	names := rapid.SampledFrom([]string{"A", "B", "FIRST", "SECOND", "name", `\`, "é", ""})
	looked := 0
	rapid.Check(t, func(t *rapid.T) {
		variables := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) corev1.EnvVar {
			return corev1.EnvVar{Name: names.Draw(t, "name"), Value: names.Draw(t, "value")}
		}), 0, 40).Draw(t, "variables")
		raw, err := json.Marshal(variables)
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "nameless") {
			raw = bytes.ReplaceAll(raw, []byte(`"name":""`), []byte(`"name":1`))
		}
		var items []plan.Item
		for _, name := range rapid.SliceOfNDistinct(names, 1, 4, rapid.ID).Draw(t, "added") {
			items = append(items, plan.Item{Key: name, Value: jsontext.Value(`{"name":"x"}`)})
		}
		list := func(read bool) *List {
			b := meta.NewBudget(t.Context())
			l := &List{Kind: plan.EnvKind, bounds: &b}
			var wanted wantedList
			wanted.add(items, nil, read)
			r := rawjson.NewReader(raw)
			l.take(&r, &wanted)
			return l
		}
		got, want := list(false), list(true)
		if got.without != nil {
			looked++
		}
		find := func(key string) {
			gotItem, gotIndex := got.Find(key)
			wantItem, wantIndex := want.Find(key)
			if gotIndex != wantIndex || (gotItem == nil) != (wantItem == nil) || gotItem != nil && string(gotItem.Value) != string(wantItem.Value) {
				t.Fatalf("%s in %s: %v at %d, want %v at %d", key, raw, gotItem, gotIndex, wantItem, wantIndex)
			}
		}
		for range rapid.SampledFrom([]int{1, podmeta.ShortList + 1}).Draw(t, "times") { // of which many use an index
			for _, w := range items {
				find(w.Key)
				got.Add(w)
				want.Add(w)
				find(w.Key)
			}
			find(names.Draw(t, "any"))
		}
		same := func(a, b plan.Item) bool { return a.Key == b.Key && string(a.Value) == string(b.Value) }
		if got.Length() != want.Length() || !slices.EqualFunc(got.All(), want.All(), same) {
			t.Fatalf("%s: %d elements %v, want %d %v", raw, got.Length(), got.All(), want.Length(), want.All())
		}
	})
	if looked == 0 {
		t.Error("no list was looked through")
	}
}
