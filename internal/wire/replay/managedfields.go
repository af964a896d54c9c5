// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/json"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// WithManagedFields returns an object, as webhooks have left it, with the
// metadata.managedFields that the API server computes for the labels and annotations of
// what was sent. It does that before it calls webhooks, and not again for a reinvocation
// (k8s.io/apiserver, fieldmanager). An object that has managed fields stays as it is.
func WithManagedFields(object, sent []byte) ([]byte, error) {
	if _, there := rawjson.Lookup(object, "metadata", "managedFields"); there {
		return object, nil
	}
	if _, there := rawjson.Lookup(object, "metadata"); !there {
		return object, nil
	}
	fields := map[string]map[string]struct{}{}
	for _, name := range []string{"labels", "annotations"} {
		of := map[string]struct{}{}
		all, _ := rawjson.Lookup(sent, "metadata", name)
		r := rawjson.NewReader(all)
		r.Object(func(key []byte) { of["f:"+string(key)] = struct{}{} })
		fields["f:"+name] = of
	}
	patch, err := json.Marshal([]any{map[string]any{"op": "add", "path": "/metadata/managedFields", "value": []any{map[string]any{
		"manager": "sallyport", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:metadata": fields},
	}}}})
	if err != nil {
		return nil, err
	}
	return Apply(object, patch)
}
