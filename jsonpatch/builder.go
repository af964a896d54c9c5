// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"bytes"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/internal/rawjson"
)

// Builder collects edits against a raw JSON document and emits the smallest
// patch that makes them.
//
// Edits name places by reference tokens (RFC 6901, unescaped; an array index in
// decimal) in the document as it came, whatever other edits there are: nothing
// shifts while edits are collected. Containers that an edit needs and that are
// absent or null are created, together with all that goes into them, by a single
// operation: a list where something is appended, else an object. What stands
// below a value that was set before, or below one that was removed, is edited in
// its stead. The same edits in the same order give the same bytes.
//
// Values are single JSON values; they are taken as they are, unchecked.
//
// The zero value is not usable; see [NewBuilder]. A Builder serves one document
// and one goroutine.
type Builder struct {
	raw  []byte
	path string // where raw is in the document
	part bool   // raw is a part of the document, which may be absent
	root node
}

// NewBuilder starts with no edits. Raw is one valid JSON value, without duplicate names
// and invalid UTF-8, as reviews have it; it is neither copied nor changed.
func NewBuilder(raw []byte) *Builder { return &Builder{raw: raw} }

// NewBuilderAt edits one place of a document whose content the caller has at hand, and
// spares the search for it: raw is what stands at the place that the pointer leads
// to, nil if nothing does. Its parent must be there and be an object. Tokens of
// edits begin at the place.
func NewBuilderAt(pointer string, raw jsontext.Value) *Builder {
	return &Builder{raw: raw, path: pointer, part: true}
}

// Set adds or replaces the member or element at the tokens. A value that is
// already there, byte for byte, gives no operation. It replaces earlier edits at
// or below the same place.
func (b *Builder) Set(value jsontext.Value, tokens ...string) {
	n := b.at(tokens)
	if value == nil {
		value = jsontext.Value{} // set, and found missing by Patch
	}
	*n = node{token: n.token, set: value}
}

// Append adds elements at the end of the array at the tokens.
func (b *Builder) Append(tokens []string, values ...jsontext.Value) {
	if len(values) == 0 {
		return
	}
	n := b.at(tokens)
	n.appended = append(n.appended, values...)
}

// Remove removes the member or element at the tokens. If there is none, it gives
// no operation.
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

// Patch emits the operations. An edit that cannot be made is an error that names
// its place: a member of something that is no object, an element that is not
// there, an array that is none, a document that is empty or would be.
func (b *Builder) Patch() (Patch, error) {
	return b.AppendPatch(nil)
}

// AppendPatch is [Builder.Patch] and appends the operations to those of other
// edits, which must not concern the same places.
func (b *Builder) AppendPatch(patch Patch) (Patch, error) {
	if !b.root.edited() {
		return patch, nil
	}
	if patch == nil {
		patch = make(Patch, 0, 16)
	}
	e := emitter{reader: rawjson.NewReader(b.raw), path: append(make([]byte, 0, 128), b.path...), patch: patch}
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
	case kind == '[' && b.root.grows(): // there is nothing else in what it is about
		e.grow(&b.root, Replace, bytes.TrimSpace(b.raw))
	default:
		e.node(&b.root, Replace)
	}
	if e.err != nil {
		return nil, e.err
	}
	return e.patch, nil
}
