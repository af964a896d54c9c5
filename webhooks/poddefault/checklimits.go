// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// What one object may have. They are far above what any pod gets, and leave out nothing
// that a pod could be stored with: an object goes into the pod whole.
const (
	// maxSpec is how many bytes of JSON a spec may have. etcd stores 1.5 MiB of a pod.
	maxSpec = 1 << 20
	// maxList is how many elements each list and map may have.
	maxList = 2000
	// maxBrought is how many init containers, and how many sidecars, an object may bring.
	maxBrought = 100
)

// limits reports what is too much: if anything is, nothing else is looked at.
func limits(spec *kubeflowv1alpha1.PodDefaultSpec, path *field.Path) (mistakes field.ErrorList) {
	if size := sizeOf(spec); size > maxSpec {
		return field.ErrorList{field.TooLong(path, "", maxSpec)}
	}
	mistakes = longLists(reflect.ValueOf(spec).Elem(), path, nil)
	for _, list := range []struct {
		name string
		n    int
	}{{"initContainers", len(spec.InitContainers)}, {"sidecars", len(spec.Sidecars)}} {
		if list.n > maxBrought {
			mistakes = append(mistakes, field.TooMany(path.Child(list.name), list.n, maxBrought))
		}
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return mistakes
	}
	if n := len(spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms); n > maxNodeTerms {
		mistakes = append(mistakes, field.TooMany(path.Child("affinity", "nodeAffinity", required, "nodeSelectorTerms"), n, maxNodeTerms))
	}
	return mistakes
}

// sizeOf is how many bytes of JSON a part of an object has.
func sizeOf(value any) int {
	encoded, err := jsonpatch.AppendValue(nil, value)
	if err != nil { // values that were decoded from JSON can be encoded
		return maxSpec + 1
	}
	return len(encoded)
}

// longLists reports the lists and maps, at any depth, that have too many elements.
func longLists(v reflect.Value, path *field.Path, mistakes field.ErrorList) field.ErrorList {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return longLists(v.Elem(), path, mistakes)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			structField := v.Type().Field(i)
			name, _, _ := strings.Cut(structField.Tag.Get("json"), ",")
			switch {
			case !structField.IsExported():
			case name == "": // inlined
				mistakes = longLists(v.Field(i), path, mistakes)
			default:
				mistakes = longLists(v.Field(i), path.Child(name), mistakes)
			}
		}
	case reflect.Slice, reflect.Map:
		if v.Len() > maxList {
			return append(mistakes, field.TooMany(path, v.Len(), maxList))
		}
		if kind := v.Type().Elem().Kind(); v.Kind() == reflect.Slice && slices.Contains([]reflect.Kind{reflect.Struct, reflect.Pointer}, kind) {
			for i := range v.Len() {
				mistakes = longLists(v.Index(i), path.Index(i), mistakes)
			}
		}
	}
	return mistakes
}
