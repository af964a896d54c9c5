// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// Builder collects edits against a raw JSON document and emits the smallest patch that
// makes them.
//
// Edits name places by reference tokens (RFC 6901, unescaped; array indices in decimal)
// in the original document, regardless of other edits: nothing shifts while edits are
// collected. If an edit needs containers that are absent or null, a single operation
// creates them with their content: a list for Append, otherwise an object. Edits below
// a place that was set or removed before apply to the new value. The same edits in the
// same order give the same bytes.
//
// Values are single JSON values and are not validated.
//
// The zero value is not usable; see [NewBuilder]. A Builder serves one document and one
// goroutine.
type Builder struct {
	raw  []byte
	path string // where raw is in the document
	part bool   // raw is a part of the document, which may be absent
	root node
}

// NewBuilder starts without edits. Raw is one valid JSON value without duplicate names
// or invalid UTF-8, as checked reviews contain. It is neither copied nor changed.
func NewBuilder(raw []byte) *Builder { return &Builder{raw: raw} }

// NewBuilderAt edits one place of a document and saves the search for it. Raw is the
// value at pointer, or nil if there is none. The parent must exist and be an object.
// Tokens of edits are relative to the place.
func NewBuilderAt(pointer string, raw []byte) *Builder {
	return &Builder{raw: raw, path: pointer, part: true}
}

// Set adds or replaces the member or element at the tokens. If it already has the same
// bytes, there is no operation. Set replaces earlier edits at or below the place.
func (b *Builder) Set(value json.RawMessage, tokens ...string) {
	n := b.at(tokens)
	if value == nil {
		value = json.RawMessage{} // set, and found missing by Patch
	}
	*n = node{token: n.token, set: value}
}

// Append adds elements to the end of the array at the tokens.
func (b *Builder) Append(tokens []string, values ...json.RawMessage) {
	if len(values) == 0 {
		return
	}
	n := b.at(tokens)
	n.appended = append(n.appended, values...)
}

// Remove removes the member or element at the tokens. If it does not exist, there is no
// operation.
func (b *Builder) Remove(tokens ...string) {
	n := b.at(tokens)
	*n = node{token: n.token, removed: true}
}

func (b *Builder) at(tokens []string) *node {
	n := &b.root
	for _, token := range tokens {
		n = n.at(token)
	}
	return n
}

// Patch emits the operations. An impossible edit is an error that names its place: a
// member of something other than an object, a missing element, an Append to something
// other than an array, or a document that is or becomes empty.
func (b *Builder) Patch() (Patch, error) {
	return b.AppendPatch(nil)
}

// AppendPatch is [Builder.Patch], appended to the operations of other edits. Those must
// not concern the same places.
func (b *Builder) AppendPatch(patch Patch) (Patch, error) {
	if !b.root.edited() {
		return patch, nil
	}
	if patch == nil {
		patch = make(Patch, 0, 16)
	}
	e := emitter{reader: rawjson.NewReader(b.raw), path: append(make([]byte, 0, len(b.path)+16), b.path...), patch: patch}
	kind := e.reader.Kind()
	switch {
	case b.part && kind == 0:
		if value := e.value(&b.root, nil); value != nil {
			e.emit(Operation{Op: Add, Value: value})
		}
	case kind == 0:
		return nil, errors.New("there is no document to edit")
	case !b.part && b.root.gone():
		return nil, errors.New("the whole document cannot be removed")
	case kind == '[' && b.root.grows(): // the root has no other edits
		e.grow(&b.root, Replace, bytes.TrimSpace(b.raw))
	default:
		e.node(&b.root, Replace)
	}
	if e.err != nil {
		return nil, e.err
	}
	return e.patch, nil
}
