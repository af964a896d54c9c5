// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	jsonpatchv4 "gopkg.in/evanphx/json-patch.v4"

	"github.com/sallyport-io/sallyport/jsonpatch"
)

var errNoPatch = errors.New("the handler's patch is not a JSON patch")

// canonical returns a patch with the same result as the given one. It depends only on the
// document and the result, not on how the patch was written, and is empty if nothing changes.
//
// It applies the patch with the API server's library.
func canonical(document, patch []byte) (jsonpatch.Patch, error) {
	operations, err := jsonpatchv4.DecodePatch(patch)
	if err != nil {
		return nil, errNoPatch // the error may quote the patch
	}
	if len(operations) == 0 {
		return nil, nil
	}
	if len(document) == 0 {
		return nil, errors.New("the handler patches a request that has no object")
	}
	patched, err := apply(operations, document)
	if err != nil {
		return nil, fmt.Errorf("the handler's patch cannot be applied to the object: %w", err)
	}
	before, err := decode(document)
	if err != nil {
		return nil, err
	}
	after, err := decode(patched)
	if err != nil {
		return nil, err
	}
	return jsonpatch.DiffRaw(document, before, after)
}

// apply turns a panic into an error: the library dereferences nil when a "test" compares the
// whole document with nothing, or arrays that contain null.
func apply(operations jsonpatchv4.Patch, document []byte) (patched []byte, err error) {
	defer func() {
		if recover() != nil {
			patched, err = nil, errors.New("an operation makes the library panic that applies it")
		}
	}()
	return operations.Apply(document)
}

// decode preserves the text of numbers.
func decode(document []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil || decoder.More() {
		return nil, errors.New("decode the object to be patched: it is not a JSON object")
	}
	return object, nil
}
