// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// A listKind defines the key of the elements of one of the pod's lists, and when an
// existing element satisfies a PodDefault. The keys are those by which Kubernetes
// merges the lists (k8s.io/api/core/v1, patchMergeKey).
type listKind struct {
	name    string // of an element, for messages
	keyName string
	// The key is the text of this member, or the result of key.
	member string
	key    func(element jsontext.Value) []byte
	// differences returns the fields in which have does not satisfy want.
	differences func(want, have jsontext.Value) []string
}

var (
	envKind = &listKind{
		name: "env", keyName: "name", member: "name",
		differences: exactly[corev1.EnvVar](dropEnvDefaults),
	}
	envFromKind = &listKind{
		name: "envFrom", keyName: "source", key: envFromKey,
		differences: never, // equal keys mean equal elements
	}
	mountKind = &listKind{
		name: "volumeMount", keyName: "mountPath", member: "mountPath",
		differences: exactly[corev1.VolumeMount](dropMountDefaults),
	}
	volumeKind = &listKind{
		name: "volume", keyName: "name", member: "name",
		differences: volumeDifferences,
	}
	tolerationKind = &listKind{
		name: "toleration", keyName: "taint", key: tolerationKey,
		differences: secondsDifference, // all other fields are in the key
	}
	pullSecretKind = &listKind{
		name: "imagePullSecret", keyName: "name", member: "name",
		differences: func(_, _ jsontext.Value) []string { return nil },
	}
	containerKind = &listKind{
		name: "container", keyName: "name", member: "name",
		differences: subset,
	}
)

// keyOf returns the key of an element.
func (k *listKind) keyOf(value jsontext.Value) []byte {
	r := rawjson.NewReader(value)
	key, _ := k.read(&r)
	return key
}

// read skips an element and returns its key and the key's offset, or -1 if the key is
// not contiguous in the input.
func (k *listKind) read(r *rawjson.Reader) (key []byte, at int) {
	if k.member != "" {
		return r.MemberText(k.member)
	}
	return k.key(r.Value()), -1
}

// compare is differences within bounds. Most existing elements were added by an earlier
// call and come back unchanged.
func (k *listKind) compare(b *bounds, want, have jsontext.Value) []string {
	if bytes.Equal(want, have) {
		b.scans(len(want))
		return nil
	}
	if !b.compares(want, have) {
		return nil
	}
	return k.differences(want, have)
}

// memberText returns the text of an element's member, or nil.
func memberText(name string) func(jsontext.Value) []byte {
	return func(element jsontext.Value) []byte {
		r := rawjson.NewReader(element)
		text, _ := r.MemberText(name)
		return text
	}
}

// envFromKey identifies a source by all its fields: prefix, the names of both sources,
// and optional. Kubernetes accepts an optional and a required source next to each
// other, with the effect of the latter. The list is atomic in Kubernetes.
func envFromKey(element jsontext.Value) []byte {
	var prefix, configMap, secret []byte
	optional := false
	name := func(source jsontext.Value) []byte {
		optional = optional || string(member(source, "optional")) == "true"
		return memberText("name")(source)
	}
	r := rawjson.NewReader(element)
	r.Object(func(member []byte) {
		switch string(member) {
		case "prefix":
			prefix, _ = r.String()
		case "configMapRef":
			configMap = name(r.Value())
		case "secretRef":
			secret = name(r.Value())
		}
	})
	var key []byte
	for _, part := range []struct {
		name  string
		value []byte
	}{{"prefix ", prefix}, {"configMap ", configMap}, {"secret ", secret}} {
		if len(part.value) == 0 {
			continue
		}
		if key != nil {
			key = append(key, ", "...)
		}
		key = append(append(key, part.name...), part.value...)
	}
	if optional {
		key = append(key, ", optional"...)
	}
	return key
}

// tolerationKey identifies a toleration as core/v1's MatchToleration does: by
// everything but its tolerationSeconds.
func tolerationKey(element jsontext.Value) []byte {
	var key, operator, value, effect string
	r := rawjson.NewReader(element)
	r.Object(func(member []byte) {
		var to *string
		switch string(member) {
		case "key":
			to = &key
		case "operator":
			to = &operator
		case "value":
			to = &value
		case "effect":
			to = &effect
		default:
			return
		}
		text, _ := r.String()
		*to = string(text)
	})
	if operator == "" {
		operator = "Equal"
	}
	if value != "" {
		operator += " " + value
	}
	return []byte(strings.TrimPrefix(key+" "+operator+":"+effect, " "))
}

func secondsDifference(want, have jsontext.Value) []string {
	if string(member(want, "tolerationSeconds")) == string(member(have, "tolerationSeconds")) {
		return nil
	}
	return []string{"tolerationSeconds"}
}

// A list is one list of the pod while PodDefaults are merged into it.
type list struct {
	kind   *listKind
	parent string // pointer to the parent
	field  string
	raw    jsontext.Value // the original; nil if absent
	bounds *bounds        // of the pod

	read      bool
	present   []element // the original elements, see [list.length]
	keysApart [][]byte  // of elements whose key is not contiguous in the input
	ahead     bool      // present was read with the pod
	added     []item
	removed   []removal
	replaced  []replacement

	looks   int            // number of lookups
	keys    map[string]int // positions of keys, once a long list has many lookups
	indexed int            // number of elements in keys
	swapped map[int]int    // positions in replaced by element index, once there are many
}

// A replacement replaces an element of the pod. Without an origin it is the pod's own again.
type replacement struct {
	index int
	item
}

// A removal removes an element.
type removal struct {
	index  int
	origin *Compiled
}

// An element is an original element, as offsets in the list. There may be thousands,
// and without pointers the garbage collector need not scan them.
type element struct {
	from, to       int32
	keyFrom, keyTo int32 // keyFrom is the complement of an index of list.keysApart if the key is not contiguous in the input
}

// path is a pointer to the list.
func (l *list) path() string { return l.parent + "/" + l.field }

// length returns the number of original elements.
func (l *list) length() int {
	if l.read {
		return len(l.present)
	}
	l.read = true
	if l.ahead {
		for i := range l.present {
			if !l.bounds.reads() {
				l.present = l.present[:i]
				break
			}
		}
		return len(l.present)
	}
	r := rawjson.NewReader(l.raw)
	r.Array(func(int) {
		if !l.bounds.reads() {
			r.Stop()
			return
		}
		l.element(&r, 0)
	})
	return len(l.present)
}

// element reads the next element of a list that begins at begin.
func (l *list) element(r *rawjson.Reader, begin int) {
	if l.present == nil {
		l.present = make([]element, 0, 16)
	}
	from := r.Offset()
	key, at := l.kind.read(r)
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

// key returns the key of an original element.
func (l *list) key(index int) []byte {
	e := &l.present[index]
	if e.keyFrom < 0 {
		return l.keysApart[^e.keyFrom]
	}
	return l.raw[e.keyFrom:e.keyTo]
}

// value returns an original element.
func (l *list) value(index int) jsontext.Value {
	e := &l.present[index]
	return l.raw[e.from:e.to:e.to]
}

// take reads the list at the reader, including its elements if an object adds to it, so
// that they need not be read again. It reads none if there are far too many.
func (l *list) take(r *rawjson.Reader, wanted bool) {
	start := r.Offset()
	if wanted = wanted && l.bounds.ahead <= maxElements; wanted {
		r.Array(func(int) {
			if l.bounds.ahead++; l.bounds.ahead <= maxElements {
				l.element(r, start)
			}
		})
	} else {
		r.Skip()
	}
	l.raw = r.Since(start)
	if l.ahead = wanted && l.bounds.ahead <= maxElements; !l.ahead {
		l.present, l.keysApart = nil, nil
	}
}

// find returns the element with the key and its index, or nil. Of several elements with
// the key, as env may have, the last wins.
func (l *list) find(key string) (*item, int) {
	present := l.length()
	if length := present + len(l.added); length > shortList {
		if l.looks++; l.looks > shortList {
			if i, ok := l.positions()[key]; ok {
				return l.at(i), i
			}
			return nil, -1
		}
		l.bounds.scans(length)
	}
	for i := len(l.added) - 1; i >= 0; i-- {
		if l.added[i].key == key {
			return &l.added[i], present + i
		}
	}
	for i := present - 1; i >= 0; i-- {
		if string(l.key(i)) == key {
			return l.at(i), i
		}
	}
	return nil, -1
}

// original returns the pod's own element with the key, whatever has replaced it, or nil.
func (l *list) original(key string) jsontext.Value {
	if _, index := l.find(key); index >= 0 && index < l.length() {
		return l.value(index)
	}
	return nil
}

// at returns the element at an index. Original elements come first.
func (l *list) at(index int) *item {
	if i := index - len(l.present); i >= 0 {
		return &l.added[i]
	}
	if i := l.replacement(index); i >= 0 {
		return &l.replaced[i].item
	}
	return &item{key: string(l.key(index)), value: l.value(index)}
}

// replacement returns the position in replaced of an original element, or -1.
func (l *list) replacement(index int) int {
	if l.swapped != nil {
		if i, ok := l.swapped[index]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(l.replaced, func(r replacement) bool { return r.index == index })
}

// positions returns the positions of the keys of a long list.
func (l *list) positions() map[string]int {
	length := len(l.present) + len(l.added)
	if l.keys == nil {
		l.keys = make(map[string]int, 2*length)
	}
	for ; l.indexed < length; l.indexed++ {
		if i := l.indexed - len(l.present); i >= 0 {
			l.keys[l.added[i].key] = l.indexed
		} else {
			l.keys[string(l.key(l.indexed))] = l.indexed
		}
	}
	return l.keys
}

// replace replaces the element with the same key, in its place.
func (l *list) replace(wanted item) {
	there, index := l.find(wanted.key)
	l.bounds.replaces(len(there.value), len(wanted.value))
	if i := index - len(l.present); i >= 0 {
		l.added[i] = wanted
		return
	}
	// The pod has it already, and an earlier object wanted another.
	if original := l.value(index); l.kind != containerKind && len(l.kind.compare(l.bounds, wanted.value, original)) == 0 {
		wanted = item{key: wanted.key, value: original}
	}
	if i := l.replacement(index); i >= 0 {
		l.replaced[i].item = wanted
		return
	}
	l.replaced = append(l.replaced, replacement{index, wanted})
	if l.swapped != nil {
		l.swapped[index] = len(l.replaced) - 1
	} else if len(l.replaced) > shortList {
		l.swapped = make(map[int]int, 2*len(l.replaced))
		for i, r := range l.replaced {
			l.swapped[r.index] = i
		}
	}
}

// add appends the element unless it exists. It returns a conflicting element with the
// fields that differ.
func (l *list) add(wanted item) (other *item, differences []string) {
	other, _ = l.find(wanted.key)
	if other == nil {
		l.bounds.grow(len(wanted.value) + 1)
		if l.added == nil { // most objects add one element per list
			l.added = make([]item, 0, min(max(1, l.bounds.applied), shortList))
		}
		l.added = append(l.added, wanted)
		return nil, nil
	}
	differences = l.kind.compare(l.bounds, wanted.value, other.value)
	if len(differences) == 0 {
		return nil, nil
	}
	return other, differences
}
