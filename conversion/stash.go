// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Stash stores a value in an annotation, as JSON, if the object's version has no field for it.
// It replaces an annotation with the same key. The key should have the API group as its prefix,
// as in "stable.example.com/v1".
//
// A stash can be stale: an edit of the object in the other version does not update it.
// [Restore] only what the other version cannot express, and check that it still fits the rest
// of the object.
func Stash(object metav1.Object, annotation string, value any) error {
	encoded, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("annotation %s: keeping a %T: %w", annotation, value, err)
	}
	annotations := maps.Clone(object.GetAnnotations()) // the source may share it
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotation] = string(encoded)
	object.SetAnnotations(annotations)
	return nil
}

// Restore decodes a value that [Stash] stored into into, and removes the annotation. If the
// annotation is missing or invalid, found is false and into is unchanged. That is not an error: any
// user can edit an annotation, and an object that cannot be converted cannot be read.
func Restore(object metav1.Object, annotation string, into any) (found bool) {
	annotations := object.GetAnnotations()
	encoded, ok := annotations[annotation]
	if !ok {
		return false
	}
	annotations = maps.Clone(annotations)
	delete(annotations, annotation)
	if len(annotations) == 0 {
		annotations = nil
	}
	object.SetAnnotations(annotations)
	return restore([]byte(encoded), into)
}

// restore decodes into a new value first, so that into never has half of an invalid value.
func restore(encoded []byte, into any) bool {
	target := reflect.ValueOf(into)
	fresh := reflect.New(target.Type().Elem())
	if err := json.Unmarshal(encoded, fresh.Interface()); err != nil {
		return false
	}
	target.Elem().Set(fresh.Elem())
	return true
}
