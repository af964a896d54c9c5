// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/internal/rawjson"
)

// Reader walks one valid JSON value in a single pass and decodes nothing that its
// caller does not ask for.
type Reader = rawjson.Reader

// NewReader reads the JSON value in data. The slices it hands out alias data.
func NewReader(data []byte) Reader { return rawjson.NewReader(data) }

// Lookup returns the bytes of the value that the reference tokens lead to in
// raw, and whether there is one. A null on the way, or at the end, is a value
// like any other. Raw must be valid JSON, see [Reader].
func Lookup(raw []byte, tokens ...string) (jsontext.Value, bool) {
	return rawjson.Lookup(raw, tokens...)
}
