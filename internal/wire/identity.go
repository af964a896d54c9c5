// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/sallyport-io/sallyport/internal/rawjson"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// checkIdentity refuses a patch that changes metadata.name or metadata.namespace.
// Authorization, the checks of other webhooks and the URL of the request are all
// about the name it came with; the API server creates the object under another one
// all the same, or fails in ways that no failurePolicy covers. A name may be given
// to an object that has none yet (generateName).
func checkIdentity(req *admissionv1.AdmissionRequest, patch jsonpatch.Patch) error {
	for _, op := range patch {
		if op.Op == jsonpatch.Test || !holdsIdentity(op.Path) && (op.Op != jsonpatch.Move || !holdsIdentity(op.From)) {
			continue
		}
		for _, field := range []string{"name", "namespace"} {
			before, _ := rawjson.Lookup(req.Object.Raw, "metadata", field)
			after, ok := identityAfter(op, field)
			if !ok {
				continue
			}
			if text(before) == text(after) || text(before) == "" && (field == "name" || text(after) == req.Namespace) {
				continue
			}
			return fmt.Errorf("the handler changed metadata.%s, by which the request goes on: it must be left as it is", field)
		}
	}
	return nil
}

func holdsIdentity(pointer string) bool {
	switch pointer {
	case "", "/metadata", "/metadata/name", "/metadata/namespace":
		return true
	}
	return false
}

// identityAfter is what an operation makes of a field of the metadata, if anything.
func identityAfter(op jsonpatch.Operation, field string) (jsontext.Value, bool) {
	value := op.Value // nil for a removal, and for what comes from elsewhere in the object
	var ok bool
	switch op.Path {
	case "":
		value, _ = rawjson.Lookup(value, "metadata", field)
		ok = true
	case "/metadata":
		value, _ = rawjson.Lookup(value, field)
		ok = true
	case "/metadata/" + field:
		ok = true
	}
	if op.Op == jsonpatch.Move && (op.From == "/metadata" || op.From == "/metadata/"+field) {
		return nil, true
	}
	return value, ok
}

// text is a JSON string without its quotes; "" for anything else.
func text(value jsontext.Value) string {
	r := rawjson.NewReader(value)
	s, _ := r.String()
	return string(s)
}
