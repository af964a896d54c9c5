// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/internal/rawjson"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// A holder is what has fields: the pod's spec, or a container. Fields that few
// PodDefaults know are looked for when one asks.
type holder struct {
	path   string         // pointer to it
	raw    jsontext.Value // as the pod came
	bounds *bounds        // of the pod
	lists  []*heldList
	values []*heldValue
	terms  *nodeTerms // required node affinity, nil if nobody asked

	looks   int                   // how often something was looked for
	objects map[string]*rawObject // those of its objects that were read, by their pointers, once that is often
	byID    map[string]*heldValue // the values, once they are many
}

// manyLooks is how often a holder is searched before its members are indexed.
const manyLooks = 8

// lookup returns what stands at the tokens below the holder, as the pod came.
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

// member is what a field of the holder has, as the pod came; nil if it is absent.
func (h *holder) member(name string) jsontext.Value {
	value, _ := h.lookup(name)
	return value
}

// A rawObject is an object whose members are indexed. Of members that share a name the
// first one counts, as in [rawjson.Lookup].
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

// A heldList is a list of the holder, in the order in which they were asked for.
type heldList struct {
	tokens []string // reference tokens below the holder
	list
}

// A heldValue is a value of the holder that a PodDefault wants.
type heldValue struct {
	tokens  []string
	value   jsontext.Value
	origin  *Compiled
	there   bool       // the pod came with it
	removes [][]string // what goes away when it is set
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

// set notes a value that a PodDefault wants, and of which no other was noted.
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

// A fieldValue is what a PodDefault wants a field to be: a scalar, or a value that is
// taken as a whole.
type fieldValue struct {
	tokens []string
	value  jsontext.Value
	rule   *valueRule
}

// name is the field's, for people.
func (f *fieldValue) name() string {
	if len(f.tokens) == 2 && f.tokens[0] == "nodeSelector" {
		return "nodeSelector " + f.tokens[1]
	}
	return strings.Join(f.tokens, ".")
}

// appendList adds elements to the lists, unless there are none.
func appendList[T any](c *Compiled, lists []fieldList, kind *listKind, values []T, tokens ...string) []fieldList {
	if len(values) == 0 {
		return lists
	}
	return append(lists, fieldList{kind, tokens, compileList(c, kind, values), jsonpatch.Pointer(tokens...)})
}
