// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// checkIdentity refuses a patch that changes metadata.name or metadata.namespace.
// Authorization, other webhooks and the request URL all refer to the original name. The
// API server would still create the object under the new one, or fail in ways that no
// failure policy covers. An object without a name (generateName) may get one.
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
			return fmt.Errorf("the handler changed metadata.%s, which identifies the object: it must not change", field)
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

// identityAfter returns the value that an operation gives a metadata field, if it
// changes the field.
func identityAfter(op jsonpatch.Operation, field string) (jsontext.Value, bool) {
	value := jsontext.Value(op.Value) // nil for a removal, and for a value copied or moved within the object
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

// text returns a JSON string without its quotes, and "" for anything else.
func text(value jsontext.Value) string {
	r := rawjson.NewReader(value)
	s, _ := r.String()
	return string(s)
}
