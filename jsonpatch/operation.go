// SPDX-License-Identifier: Apache-2.0

// Package jsonpatch builds minimal JSON Patch documents (RFC 6902).
//
// A [Builder] collects edits against raw JSON and emits the smallest patch that makes
// them. [DiffRaw] and [Diff] find the changes between two values of a Go type. The
// package knows nothing of Kubernetes requests.
package jsonpatch

import (
	"encoding/json"
	"fmt"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// The operations of RFC 6902, section 4.
const (
	Add     = "add"
	Remove  = "remove"
	Replace = "replace"
	Move    = "move"
	Copy    = "copy"
	Test    = "test"
)

// Operation is one operation of a JSON Patch (RFC 6902, section 4).
type Operation struct {
	Op   string `json:"op"`
	Path string `json:"path"` // a JSON Pointer (RFC 6901)
	// From is the source of move and copy, a JSON Pointer.
	From string `json:"from,omitzero"`
	// Value is the operand of add, replace and test: one JSON value.
	Value json.RawMessage `json:"value,omitzero"`
}

// Patch is a JSON Patch. Its operations apply in order, all or none.
type Patch []Operation

// AppendJSON appends the patch in its wire form.
func (p Patch) AppendJSON(dst []byte) []byte {
	dst = append(dst, '[')
	for i, op := range p {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"op":"`...)
		dst = append(dst, op.Op...)
		dst = append(dst, `","path":`...)
		dst = rawjson.AppendString(dst, op.Path)
		if op.From != "" || op.Op == Move || op.Op == Copy {
			dst = append(dst, `,"from":`...)
			dst = rawjson.AppendString(dst, op.From)
		}
		if op.Value != nil {
			dst = append(dst, `,"value":`...)
			dst = append(dst, op.Value...)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// MarshalJSON implements [json.Marshaler].
func (p Patch) MarshalJSON() ([]byte, error) { return p.AppendJSON(nil), nil }

// Validate reports the first operation that RFC 6902 does not allow: an unknown name,
// an invalid pointer (see [SplitPointer]), or an operand that is missing or not JSON.
func (p Patch) Validate() error {
	for i, op := range p {
		if err := op.validate(); err != nil {
			return fmt.Errorf("operation %d: %w", i, err)
		}
	}
	return nil
}

func (op Operation) validate() error {
	if err := checkPointer(op.Path); err != nil {
		return fmt.Errorf("%s: path: %w", op.Op, err)
	}
	switch op.Op {
	case Add, Replace, Test:
		if rawjson.Check(op.Value, maxNesting, nil) != nil {
			return fmt.Errorf("%s %s: the value is missing or no JSON", op.Op, op.Path)
		}
	case Move, Copy:
		if err := checkPointer(op.From); err != nil {
			return fmt.Errorf("%s %s: from: %w", op.Op, op.Path, err)
		}
	case Remove:
	default:
		return fmt.Errorf("unknown operation %q", op.Op)
	}
	return nil
}
