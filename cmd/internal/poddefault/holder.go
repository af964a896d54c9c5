// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// A holder has fields: the pod's spec, or a container. Fields that few PodDefaults set
// are read on demand.
type holder struct {
	path   string         // pointer to it
	raw    jsontext.Value // the original
	bounds *bounds        // of the pod
	lists  []*heldList
	values []*heldValue
	terms  *nodeTerms // required node affinity; nil until read

	looks   int                   // number of lookups
	objects map[string]*rawObject // objects read so far by pointer, once there are many lookups
	byID    map[string]*heldValue // values by pointer, once there are many
}

// manyLooks is the number of lookups after which members are indexed.
const manyLooks = 8

// lookup returns the original value at the tokens below the holder.
func (h *holder) lookup(tokens ...string) (jsontext.Value, bool) {
	if h.looks++; h.looks <= manyLooks {
		h.bounds.scans(len(h.raw))
		return rawjson.Lookup(h.raw, tokens...)
	}
	raw, path := h.raw, ""
	for _, token := range tokens {
		object := h.objects[path]
		if object == nil {
			object = readObject(raw, h.bounds)
			if h.objects == nil {
				h.objects = map[string]*rawObject{}
			}
			h.objects[path] = object
		}
		value, ok := object.members[token]
		if !ok {
			return nil, false
		}
		raw, path = value, path+"/"+token
	}
	return raw, true
}

// member returns the original value of a field of the holder, or nil.
func (h *holder) member(name string) jsontext.Value {
	value, _ := h.lookup(name)
	return value
}

// A rawObject is an object with indexed members. Of members with the same name the
// first wins, as in [rawjson.Lookup].
type rawObject struct{ members map[string]jsontext.Value }

func readObject(raw jsontext.Value, b *bounds) *rawObject {
	object := &rawObject{map[string]jsontext.Value{}}
	b.scans(len(raw))
	r := rawjson.NewReader(raw)
	r.Object(func(name []byte) {
		if b.did(workOfVisit); b.spent() {
			r.Stop()
			return
		}
		key := string(name)
		if _, ok := object.members[key]; !ok {
			object.members[key] = r.Value()
		}
	})
	return object
}

// A heldList is a list of the holder. Lists are kept in the order of their first use.
type heldList struct {
	tokens []string // reference tokens below the holder
	list
}

// A heldValue is a value of the holder that a PodDefault sets.
type heldValue struct {
	tokens  []string
	value   jsontext.Value
	origin  *Compiled
	there   bool       // in the original pod
	removes [][]string // removed when it is set
}

func (h *holder) list(f *fieldList) *list {
	for _, known := range h.lists {
		if slices.Equal(known.tokens, f.tokens) {
			return &known.list
		}
	}
	raw, _ := h.lookup(f.tokens...)
	last := len(f.tokens) - 1
	parent := h.path
	if last > 0 {
		parent += jsonpatch.Pointer(f.tokens[:last]...)
	}
	held := &heldList{f.tokens, list{kind: f.kind, parent: parent, field: f.tokens[last], raw: raw, bounds: h.bounds}}
	h.lists = append(h.lists, held)
	return &held.list
}

func (h *holder) value(tokens []string) *heldValue {
	if h.byID != nil {
		return h.byID[jsonpatch.Pointer(tokens...)]
	}
	for _, known := range h.values {
		if slices.Equal(known.tokens, tokens) {
			return known
		}
	}
	return nil
}

// set records a value that a PodDefault sets. There must be no value for the field yet.
func (h *holder) set(v *heldValue) {
	h.values = append(h.values, v)
	if !v.there {
		h.bounds.grow(len(v.value) + len(v.tokens[len(v.tokens)-1]))
	}
	if h.byID != nil {
		h.byID[jsonpatch.Pointer(v.tokens...)] = v
	} else if len(h.values) > shortList {
		h.byID = make(map[string]*heldValue, 2*len(h.values))
		for _, known := range h.values {
			h.byID[jsonpatch.Pointer(known.tokens...)] = known
		}
	}
}

// A fieldList is what a PodDefault adds to a list of the pod's spec or of containers.
type fieldList struct {
	kind   *listKind
	tokens []string
	items  []item
	id     string // pointer to it below the pod's spec or the container
}

// A fieldValue is a field's value in a PodDefault: a scalar, or a value that is set as
// a whole.
type fieldValue struct {
	tokens []string
	value  jsontext.Value
	rule   *valueRule
}

// name names the field in messages.
func (f *fieldValue) name() string {
	if len(f.tokens) == 2 && f.tokens[0] == "nodeSelector" {
		return "nodeSelector " + f.tokens[1]
	}
	return strings.Join(f.tokens, ".")
}

// appendList adds a list of elements, unless it is empty.
func appendList[T any](c *Compiled, lists []fieldList, kind *listKind, values []T, tokens ...string) []fieldList {
	if len(values) == 0 {
		return lists
	}
	return append(lists, fieldList{kind, tokens, compileList(c, kind, values), jsonpatch.Pointer(tokens...)})
}
