// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/jsonpatch"
)

// A holder is what has fields: the pod's spec, or a container. Fields that few
// PodDefaults know are looked for when one asks.
type holder struct {
	path   string         // pointer to it
	raw    jsontext.Value // as the pod came
	lists  []*heldList
	values []*heldValue
	terms  *nodeTerms // required node affinity, nil if nobody asked
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
	raw, _ := jsonpatch.Lookup(h.raw, f.tokens...)
	last := len(f.tokens) - 1
	parent := h.path
	if last > 0 {
		parent += jsonpatch.Pointer(f.tokens[:last]...)
	}
	held := &heldList{f.tokens, list{kind: f.kind, parent: parent, field: f.tokens[last], raw: raw}}
	h.lists = append(h.lists, held)
	return &held.list
}

func (h *holder) value(tokens []string) *heldValue {
	for _, known := range h.values {
		if slices.Equal(known.tokens, tokens) {
			return known
		}
	}
	return nil
}

// A fieldList is what a PodDefault adds to a list of the pod's spec or of containers.
type fieldList struct {
	kind   *listKind
	tokens []string
	items  []item
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
	return append(lists, fieldList{kind, tokens, compileList(c, kind, values)})
}
