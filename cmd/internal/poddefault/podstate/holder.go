// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// A Holder has fields: the pod's spec, or a container. Fields that few PodDefaults set
// are read on demand.
type Holder struct {
	Path   string         // pointer to it
	Raw    jsontext.Value // the original
	Bounds *meta.Budget   // of the pod
	Lists  []*heldList
	Values []*HeldValue
	Terms  *NodeTerms // required node affinity; nil until read

	looks   int                   // number of lookups
	objects map[string]*rawObject // objects read so far by pointer, once there are many lookups
	byID    map[string]*HeldValue // values by pointer, once there are many
}

// manyLooks is the number of lookups after which members are indexed.
const manyLooks = 8

// Lookup returns the original value at the tokens below the holder.
func (h *Holder) Lookup(tokens ...string) (jsontext.Value, bool) {
	if h.looks++; h.looks <= manyLooks {
		h.Bounds.Scans(len(h.Raw))
		return rawjson.Lookup(h.Raw, tokens...)
	}
	raw, path := h.Raw, ""
	for _, token := range tokens {
		object := h.objects[path]
		if object == nil {
			object = readObject(raw, h.Bounds)
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

// Member returns the original value of a field of the holder, or nil.
func (h *Holder) Member(name string) jsontext.Value {
	value, _ := h.Lookup(name)
	return value
}

// A rawObject is an object with indexed members. Of members with the same name the
// first wins, as in [rawjson.Lookup].
type rawObject struct{ members map[string]jsontext.Value }

func readObject(raw jsontext.Value, b *meta.Budget) *rawObject {
	object := &rawObject{map[string]jsontext.Value{}}
	b.Scans(len(raw))
	r := rawjson.NewReader(raw)
	r.Object(func(name []byte) {
		if b.Did(meta.WorkOfVisit); b.Spent() {
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
	Tokens []string // reference tokens below the holder
	List
}

// A HeldValue is a value of the holder that a PodDefault sets.
type HeldValue struct {
	Tokens  []string
	Value   jsontext.Value
	Origin  *plan.Plan
	There   bool       // in the original pod
	Removes [][]string // removed when it is set
}

// List returns a list of the holder, which is read on first use.
func (h *Holder) List(f *plan.FieldList) *List {
	for _, known := range h.Lists {
		if slices.Equal(known.Tokens, f.Tokens) {
			return &known.List
		}
	}
	raw, _ := h.Lookup(f.Tokens...)
	last := len(f.Tokens) - 1
	parent := h.Path
	if last > 0 {
		parent += jsonpatch.Pointer(f.Tokens[:last]...)
	}
	held := &heldList{f.Tokens, List{Kind: f.Kind, parent: parent, Field: f.Tokens[last], Raw: raw, bounds: h.Bounds}}
	h.Lists = append(h.Lists, held)
	return &held.List
}

// Value returns what a plan has set at the tokens, or nil.
func (h *Holder) Value(tokens []string) *HeldValue {
	if h.byID != nil {
		return h.byID[jsonpatch.Pointer(tokens...)]
	}
	for _, known := range h.Values {
		if slices.Equal(known.Tokens, tokens) {
			return known
		}
	}
	return nil
}

// Set records a value that a PodDefault sets. There must be no value for the field yet.
func (h *Holder) Set(v *HeldValue) {
	h.Values = append(h.Values, v)
	if !v.There {
		h.Bounds.Grow(len(v.Value) + len(v.Tokens[len(v.Tokens)-1]))
	}
	if h.byID != nil {
		h.byID[jsonpatch.Pointer(v.Tokens...)] = v
	} else if len(h.Values) > podmeta.ShortList {
		h.byID = make(map[string]*HeldValue, 2*len(h.Values))
		for _, known := range h.Values {
			h.byID[jsonpatch.Pointer(known.Tokens...)] = known
		}
	}
}

// Change replaces a value that another object has set.
func (h *Holder) Change(v *HeldValue, f *plan.FieldValue, c *plan.Plan, satisfied func(jsontext.Value) bool) {
	h.Bounds.Replaces(len(v.Value), len(f.Value))
	have, ok := h.Lookup(f.Tokens...)
	v.Value, v.Origin, v.Removes = f.Value, c, f.Rule.Removes
	if v.There = ok && satisfied(have); v.There {
		v.Removes = nil
	}
}

// Quantity returns the container's request or limit, its own or from an earlier
// PodDefault.
func (h *Holder) Quantity(list, name string) (q resource.Quantity, ok bool) {
	tokens := []string{"resources", list, name}
	raw, ok := h.Lookup(tokens...)
	if set := h.Value(tokens); set != nil {
		raw, ok = set.Value, true
	}
	if !ok {
		return q, false
	}
	q, err := resource.ParseQuantity(string(plan.Text(raw)))
	return q, err == nil
}
