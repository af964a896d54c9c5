// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// A List is one list of the pod while PodDefaults are merged into it.
type List struct {
	Kind   *plan.ListKind
	parent string // pointer to the parent
	Field  string
	Raw    jsontext.Value // the original; nil if absent
	bounds *meta.Budget   // of the pod

	counted   bool
	length    int            // of the original, once it is counted or ahead
	present   []element      // the original elements, see [List.original]
	keysApart [][]byte       // of elements whose key is not contiguous in the input
	ahead     bool           // it was read, or looked through, with the pod
	without   *rawjson.Texts // keys that no original element has; may be nil
	Added     []plan.Item
	Removed   []Removal
	Replaced  []replacement

	looks   int            // number of lookups
	keys    map[string]int // positions of keys, once a long list has many lookups
	indexed int            // number of elements in keys
	swapped map[int]int    // positions in replaced by element index, once there are many
}

// A replacement replaces an element of the pod. Without an origin it is the pod's own again.
type replacement struct {
	Index int
	plan.Item
}

// A Removal removes an element.
type Removal struct {
	Index  int
	Origin *plan.Plan
}

// An element is an original element, as offsets in the list. There may be thousands,
// and without pointers the garbage collector need not scan them.
type element struct {
	from, to       int32
	keyFrom, keyTo int32 // keyFrom is the complement of an index of list.keysApart if the key is not contiguous in the input
}

// Path is a pointer to the list.
func (l *List) Path() string { return l.parent + "/" + l.Field }

// Length returns the number of original elements.
func (l *List) Length() int {
	if l.counted {
		return l.length
	}
	l.counted = true
	if l.ahead {
		for i := range l.length {
			if !l.bounds.Reads() {
				l.length = i
				break
			}
		}
		return l.length
	}
	r := rawjson.NewReader(l.Raw)
	r.Array(func(int) {
		if !l.bounds.Reads() {
			r.Stop()
			return
		}
		l.element(&r, 0)
	})
	l.length = len(l.present)
	return l.length
}

// original returns an original element. It reads those of a list that was looked through.
func (l *List) original(index int) *element {
	if l.present == nil {
		l.bounds.Scans(len(l.Raw))
		r := rawjson.NewReader(l.Raw)
		r.Array(func(int) { l.element(&r, 0) })
	}
	return &l.present[index]
}

// element reads the next element of a list that begins at begin.
func (l *List) element(r *rawjson.Reader, begin int) {
	if l.present == nil {
		l.present = make([]element, 0, 16)
	}
	from := r.Offset()
	key, at := l.Kind.Read(r)
	e := element{from: int32(from - begin), to: int32(from - begin + len(r.Since(from)))}
	switch {
	case at >= 0:
		e.keyFrom, e.keyTo = int32(at-begin), int32(at-begin+len(key))
	case len(key) > 0:
		e.keyFrom = int32(^len(l.keysApart))
		l.keysApart = append(l.keysApart, key)
	}
	l.present = append(l.present, e)
}

// Key returns the key of an original element.
func (l *List) Key(index int) []byte {
	e := l.original(index)
	if e.keyFrom < 0 {
		return l.keysApart[^e.keyFrom]
	}
	return l.Raw[e.keyFrom:e.keyTo]
}

// Value returns an original element.
func (l *List) Value(index int) jsontext.Value {
	e := l.original(index)
	return l.Raw[e.from:e.to:e.to]
}

// take reads the list at the reader, including its elements if an object adds to it, so
// that they need not be read again. It reads none if they have none of the keys that are
// added, or if there are far too many.
func (l *List) take(r *rawjson.Reader, wanted *wantedList) {
	start := r.Offset()
	switch length, without := wanted.lookThrough(r); {
	case !wanted.any || l.bounds.Ahead > meta.MaxElements:
		r.Skip()
	case without:
		l.length, l.without = length, &wanted.keys
		l.bounds.Ahead += length
	default:
		r.Array(func(int) {
			if l.bounds.Ahead++; l.bounds.Ahead <= meta.MaxElements {
				l.element(r, start)
			}
		})
		l.length = len(l.present)
	}
	l.Raw = r.Since(start)
	if l.ahead = wanted.any && l.bounds.Ahead <= meta.MaxElements; !l.ahead {
		l.present, l.keysApart, l.without = nil, nil, nil
	}
}

// Find returns the element with the key and its index, or nil. Of several elements with
// the key, as env may have, the last wins.
func (l *List) Find(key string) (*plan.Item, int) {
	present := l.Length()
	searched := present
	if l.without != nil && l.without.Has(key) {
		searched = 0
	}
	if length := searched + len(l.Added); length > podmeta.ShortList {
		if l.looks++; l.looks > podmeta.ShortList {
			if i, ok := l.positions()[key]; ok {
				return l.at(i), i
			}
			return nil, -1
		}
		l.bounds.Scans(length)
	}
	for i := len(l.Added) - 1; i >= 0; i-- {
		if l.Added[i].Key == key {
			return &l.Added[i], present + i
		}
	}
	for i := searched - 1; i >= 0; i-- {
		if string(l.Key(i)) == key {
			return l.at(i), i
		}
	}
	return nil, -1
}

// Original returns the pod's own element with the key, whatever has replaced it, or nil.
func (l *List) Original(key string) jsontext.Value {
	if _, index := l.Find(key); index >= 0 && index < l.Length() {
		return l.Value(index)
	}
	return nil
}

// at returns the element at an index. Original elements come first.
func (l *List) at(index int) *plan.Item {
	if i := index - l.length; i >= 0 {
		return &l.Added[i]
	}
	if i := l.replacement(index); i >= 0 {
		return &l.Replaced[i].Item
	}
	return &plan.Item{Key: string(l.Key(index)), Value: l.Value(index)}
}

// replacement returns the position in replaced of an original element, or -1.
func (l *List) replacement(index int) int {
	if l.swapped != nil {
		if i, ok := l.swapped[index]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(l.Replaced, func(r replacement) bool { return r.Index == index })
}

// positions returns the positions of the keys of a long list.
func (l *List) positions() map[string]int {
	length := l.length + len(l.Added)
	if l.keys == nil {
		l.keys = make(map[string]int, 2*length)
	}
	for ; l.indexed < length; l.indexed++ {
		if i := l.indexed - l.length; i >= 0 {
			l.keys[l.Added[i].Key] = l.indexed
		} else {
			l.keys[string(l.Key(l.indexed))] = l.indexed
		}
	}
	return l.keys
}

// Replace replaces the element with the same key, in its place.
func (l *List) Replace(wanted plan.Item) {
	there, index := l.Find(wanted.Key)
	l.bounds.Replaces(len(there.Value), len(wanted.Value))
	if i := index - l.length; i >= 0 {
		l.Added[i] = wanted
		return
	}
	// The pod has it already, and an earlier object wanted another.
	if original := l.Value(index); l.Kind != plan.ContainerKind && len(l.Kind.Compare(l.bounds, wanted.Value, original)) == 0 {
		wanted = plan.Item{Key: wanted.Key, Value: original}
	}
	if i := l.replacement(index); i >= 0 {
		l.Replaced[i].Item = wanted
		return
	}
	l.Replaced = append(l.Replaced, replacement{index, wanted})
	if l.swapped != nil {
		l.swapped[index] = len(l.Replaced) - 1
	} else if len(l.Replaced) > podmeta.ShortList {
		l.swapped = make(map[int]int, 2*len(l.Replaced))
		for i, r := range l.Replaced {
			l.swapped[r.Index] = i
		}
	}
}

// Add appends the element unless it exists. It returns a conflicting element with the
// fields that differ.
func (l *List) Add(wanted plan.Item) (other *plan.Item, differences []string) {
	other, _ = l.Find(wanted.Key)
	if other == nil {
		l.bounds.Grow(len(wanted.Value) + 1)
		if l.Added == nil { // most objects add one element per list
			l.Added = make([]plan.Item, 0, min(max(1, l.bounds.Applied), podmeta.ShortList))
		}
		l.Added = append(l.Added, wanted)
		return nil, nil
	}
	differences = l.Kind.Compare(l.bounds, wanted.Value, other.Value)
	if len(differences) == 0 {
		return nil, nil
	}
	return other, differences
}
