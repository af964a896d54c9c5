// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"iter"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// Disagreements returns the places of a pod where c and other conflict or where finding
// out is too expensive. No pod gets both.
func Disagreements(b *meta.Budget, c, other *plan.Plan) []string {
	var places []string
	theirs := map[string][]plan.Item{}
	other.EachList(func(id string, _ *plan.ListKind, items []plan.Item) {
		if len(items) > 0 {
			theirs[id] = items
		}
	})
	c.EachList(func(id string, kind *plan.ListKind, items []plan.Item) {
		for mine, its := range sameKey(b, items, theirs[id], itemKey) {
			if len(kind.Compare(b, mine.Value, its.Value)) > 0 || b.Spent() {
				places = append(places, kind.Name+" "+mine.Key)
			}
		}
	})
	for _, map_ := range []struct {
		name        string
		mine, other []podmeta.Entry
	}{{"label", c.Labels, other.Labels}, {"annotation", c.Annotations, other.Annotations}} {
		for mine, theirs := range sameKey(b, map_.mine, map_.other, func(e podmeta.Entry) string { return e.Key }) {
			if mine.Value != theirs.Value {
				places = append(places, map_.name+" "+mine.Key)
			}
		}
	}
	for _, values := range [][2][]plan.FieldValue{{c.PodValues, other.PodValues}, {c.ContainerValues, other.ContainerValues}} {
		pointer := func(f *plan.FieldValue) string { return jsonpatch.Pointer(f.Tokens...) }
		for mine, theirs := range sameKey(b, pointers(values[0]), pointers(values[1]), pointer) {
			if !b.Compares(mine.Value, theirs.Value) || len(plan.Subset(mine.Value, theirs.Value))+len(plan.Subset(theirs.Value, mine.Value)) > 0 {
				places = append(places, mine.Name())
			}
		}
	}
	for _, lists := range [][2][]plan.Item{{c.InitContainers, other.Containers}, {c.Containers, other.InitContainers}} {
		for mine := range sameKey(b, lists[0], lists[1], itemKey) {
			places = append(places, "container "+mine.Key)
		}
	}
	return places
}

func itemKey(i plan.Item) string { return i.Key }

func pointers[T any](values []T) []*T {
	out := make([]*T, len(values))
	for i := range values {
		out[i] = &values[i]
	}
	return out
}

// sameKey yields the pairs of elements with the same key, in list order.
func sameKey[T any](b *meta.Budget, mine, theirs []T, key func(T) string) iter.Seq2[T, T] {
	return func(yield func(T, T) bool) {
		if len(mine) == 0 || len(theirs) == 0 {
			return
		}
		byKey := make(map[string][]T, len(theirs))
		for _, t := range theirs {
			byKey[key(t)] = append(byKey[key(t)], t)
		}
		b.Did(len(mine) + len(theirs))
		for _, m := range mine {
			for _, t := range byKey[key(m)] {
				if !yield(m, t) {
					return
				}
			}
		}
	}
}
