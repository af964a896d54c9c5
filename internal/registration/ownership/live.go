// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"encoding/json"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/internal/kube/foreign"
)

// Holds reports whether every field of desired, an apply configuration, has its value in
// observed. Other fields are ignored: they belong to other managers, or are defaults.
// Entries that others added to lists merged by name (webhooks, match conditions) are
// ignored as long as ours are in order.
//
// It determines without calling the API server whether an apply would change any of our fields.
func Holds(desired, observed any) (bool, error) {
	want, err := tree(desired)
	if err != nil {
		return false, err
	}
	have, err := tree(observed)
	if err != nil {
		return false, err
	}
	if object, ok := want.(map[string]any); ok { // typed clients omit them in results
		delete(object, "apiVersion")
		delete(object, "kind")
		if meta, ok := object["metadata"].(map[string]any); ok { // a precondition of the apply, not a desired value
			delete(meta, "resourceVersion")
		}
	}
	return within(want, have), nil
}

func tree(object any) (any, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var out any
	err = json.Unmarshal(data, &out)
	return out, err
}

func within(want, have any) bool {
	switch want := want.(type) {
	case map[string]any:
		have, ok := have.(map[string]any)
		if !ok {
			return len(want) == 0 && have == nil
		}
		for key, value := range want {
			if !within(value, have[key]) {
				return false
			}
		}
		return true
	case []any:
		have, ok := have.([]any)
		if !ok {
			return len(want) == 0
		}
		if named(want) {
			return subsequence(want, have)
		}
		if len(want) != len(have) {
			return false
		}
		for i := range want {
			if !within(want[i], have[i]) {
				return false
			}
		}
		return true
	default:
		return reflect.DeepEqual(want, have)
	}
}

// named reports whether server-side apply merges a list by name.
func named(list []any) bool {
	for _, item := range list {
		object, ok := item.(map[string]any)
		if !ok {
			return false
		}
		if _, ok := object["name"].(string); !ok {
			return false
		}
	}
	return len(list) > 0
}

// subsequence reports whether have contains each entry of want by name, in the same order.
func subsequence(want, have []any) bool {
	for _, item := range want {
		name := item.(map[string]any)["name"]
		found := false
		for !found && len(have) > 0 {
			object, ok := have[0].(map[string]any)
			have = have[1:]
			if ok && object["name"] == name {
				if !within(item, object) {
					return false
				}
				found = true
			}
		}
		if !found {
			return false
		}
	}
	return true
}

// Others reports whether a manager other than ours owns the field at path, given as keys of
// metadata.managedFields.
func Others(observed metav1.Object, manager string, path ...string) bool {
	for _, entry := range observed.GetManagedFields() {
		if entry.Manager != manager && entry.Subresource == "" && foreign.Owns(entry, path...) {
			return true
		}
	}
	return false
}
