// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Stash keeps in an annotation of the object, as JSON, what the object's version has no
// field for. The annotation takes the place of one with the same key. Its key should
// have the API group as its prefix, as in "stable.example.com/v1".
//
// A stash is as old as the conversion that made it: who edits the object in the other
// version does not edit the stash. So let [Restore] bring back only what the other
// version cannot say, and check that it still fits the rest.
func Stash(object metav1.Object, annotation string, value any) error {
	encoded, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("annotation %s: keeping a %T: %w", annotation, value, err)
	}
	annotations := maps.Clone(object.GetAnnotations()) // which may be the source's too
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotation] = string(encoded)
	object.SetAnnotations(annotations)
	return nil
}

// Restore takes out of the annotation what [Stash] has put in, and the annotation off
// the object. Found is false, and into not touched, if there is none, or if it does not
// hold such a value any more: anybody may have written it, and an object that cannot be
// converted cannot even be read.
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

// restore decodes into a fresh value first: a half that could be read is not taken.
func restore(encoded []byte, into any) bool {
	target := reflect.ValueOf(into)
	fresh := reflect.New(target.Type().Elem())
	if err := json.Unmarshal(encoded, fresh.Interface()); err != nil {
		return false
	}
	target.Elem().Set(fresh.Elem())
	return true
}
