// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"

	"github.com/sallyport-io/sallyport/internal/rawjson"
)

// A listKind says by which key the elements of one of the pod's lists are told
// apart, and when one that is there is what a PodDefault wants. The keys are
// those by which Kubernetes merges the lists (k8s.io/api/core/v1, patchMergeKey).
type listKind struct {
	name    string // of one element, for messages
	keyName string
	key     func(element jsontext.Value) []byte
	// differences names the fields in which what is there is not what is
	// wanted; none if it is satisfied.
	differences func(want, have jsontext.Value) []string
}

var (
	envKind = &listKind{
		name: "env", keyName: "name", key: memberText("name"),
		differences: exactly[corev1.EnvVar](dropEnvDefaults),
	}
	envFromKind = &listKind{
		name: "envFrom", keyName: "source", key: envFromKey,
		differences: never, // the key is all
	}
	mountKind = &listKind{
		name: "volumeMount", keyName: "mountPath", key: memberText("mountPath"),
		differences: exactly[corev1.VolumeMount](dropMountDefaults),
	}
	volumeKind = &listKind{
		name: "volume", keyName: "name", key: memberText("name"),
		differences: volumeDifferences,
	}
	tolerationKind = &listKind{
		name: "toleration", keyName: "taint", key: tolerationKey,
		differences: secondsDifference, // the key is all the rest
	}
	pullSecretKind = &listKind{
		name: "imagePullSecret", keyName: "name", key: memberText("name"),
		differences: func(_, _ jsontext.Value) []string { return nil },
	}
	containerKind = &listKind{
		name: "container", keyName: "name", key: memberText("name"),
		differences: subset,
	}
)

// compare is differences, within bounds. Most elements that are there are those that were
// added by an earlier call, and came back as they were.
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

// memberText returns the text of a member of an element; none if it has none.
func memberText(name string) func(jsontext.Value) []byte {
	return func(element jsontext.Value) (key []byte) {
		r := rawjson.NewReader(element)
		r.Object(func(member []byte) {
			if string(member) == name {
				key, _ = r.String()
				r.Stop()
			}
		})
		return key
	}
}

// envFromKey is all that a source is made of: prefix, the names of the two sources, and
// whether it is optional. Kubernetes takes one that is optional and one that is not beside
// each other, with the effect of the latter. The list is atomic in Kubernetes.
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
// all but its tolerationSeconds.
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
	parent string // pointer to what it is a field of
	field  string
	raw    jsontext.Value // as the pod came; nil if absent
	bounds *bounds        // of the pod

	read     bool
	present  []element // what the pod came with, read when first asked for
	added    []item
	removed  []removal
	replaced []replacement

	keys    map[string]int // where the keys stand, made when the list is long
	indexed int            // how many of the elements are in keys
	swapped map[int]int    // where in replaced the element of an index is, once they are many
}

// A replacement is an element of the pod that another takes the place of.
type replacement struct {
	index int
	item
}

// A removal is an element that goes away.
type removal struct {
	index  int
	origin *Compiled
}

// An element is one that the pod came with.
type element struct {
	key   []byte
	value jsontext.Value
}

// path is a pointer to the list.
func (l *list) path() string { return l.parent + "/" + l.field }

func (l *list) elements() []element {
	if !l.read {
		l.read = true
		if l.raw != nil {
			l.present = make([]element, 0, 8)
		}
		r := rawjson.NewReader(l.raw)
		r.Array(func(int) {
			if !l.bounds.reads() {
				r.Stop()
				return
			}
			value := r.Value()
			l.present = append(l.present, element{key: l.kind.key(value), value: value})
		})
	}
	return l.present
}

// find returns the element with the key, nil if there is none, and its index. Of
// several, as env may hold, the last is the one that counts.
func (l *list) find(key string) (*item, int) {
	present := l.elements()
	if len(present)+len(l.added) > shortList {
		if i, ok := l.positions()[key]; ok {
			return l.at(i), i
		}
		return nil, -1
	}
	for i := len(l.added) - 1; i >= 0; i-- {
		if l.added[i].key == key {
			return &l.added[i], len(present) + i
		}
	}
	for i := len(present) - 1; i >= 0; i-- {
		if string(present[i].key) == key {
			return l.at(i), i
		}
	}
	return nil, -1
}

// at is the element at an index, counting what the pod came with first.
func (l *list) at(index int) *item {
	if i := index - len(l.present); i >= 0 {
		return &l.added[i]
	}
	if l.swapped != nil {
		if i, ok := l.swapped[index]; ok {
			return &l.replaced[i].item
		}
	} else {
		for i := range l.replaced {
			if l.replaced[i].index == index {
				return &l.replaced[i].item
			}
		}
	}
	return &item{key: string(l.present[index].key), value: l.present[index].value}
}

// positions are where the keys of a long list stand.
func (l *list) positions() map[string]int {
	length := len(l.present) + len(l.added)
	if l.keys == nil {
		l.keys = make(map[string]int, 2*length)
	}
	for ; l.indexed < length; l.indexed++ {
		if i := l.indexed - len(l.present); i >= 0 {
			l.keys[l.added[i].key] = l.indexed
		} else {
			l.keys[string(l.present[l.indexed].key)] = l.indexed
		}
	}
	return l.keys
}

// replace puts the element in the place of the one of the pod that has its key.
func (l *list) replace(wanted item) {
	_, index := l.find(wanted.key)
	l.bounds.grow(len(wanted.value))
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

// add appends the element unless it is there. What stands in its way is returned
// with the fields that differ.
func (l *list) add(wanted item) (other *item, differences []string) {
	other, _ = l.find(wanted.key)
	if other == nil {
		l.bounds.grow(len(wanted.value) + 1)
		l.added = append(l.added, wanted)
		return nil, nil
	}
	differences = l.kind.compare(l.bounds, wanted.value, other.value)
	if len(differences) == 0 {
		return nil, nil
	}
	return other, differences
}
