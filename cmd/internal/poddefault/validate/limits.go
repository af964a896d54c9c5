// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// Limits for one object. They are far above what any pod needs, and exclude only what
// no stored pod could contain, because an object is added to the pod as a whole.
const (
	// MaxList limits the elements of each list and map.
	MaxList = 2000
	// MaxBrought limits the init containers, and the sidecars, of an object.
	MaxBrought = 100
)

// Limits reports exceeded limits. If there are any, nothing else is checked.
func Limits(spec *kubeflowv1alpha1.PodDefaultSpec, size int, path *field.Path) (errs field.ErrorList) {
	if size > meta.MaxSpec {
		return field.ErrorList{field.TooLong(path, "", meta.MaxSpec)}
	}
	// Build paths only if there is something to report.
	if value := reflect.ValueOf(spec).Elem(); len(long(value, nil, nil)) > 0 {
		errs = long(value, path, nil)
	}
	for _, list := range []struct {
		name string
		n    int
	}{{"initContainers", len(spec.InitContainers)}, {"sidecars", len(spec.Sidecars)}} {
		if list.n > MaxBrought {
			errs = append(errs, field.TooMany(path.Child(list.name), list.n, MaxBrought))
		}
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return errs
	}
	if n := len(spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms); n > MaxNodeTerms {
		errs = append(errs, field.TooMany(path.Child("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"), n, MaxNodeTerms))
	}
	return errs
}

// long reports lists and maps at any depth with too many elements.
func long(v reflect.Value, path *field.Path, errs field.ErrorList) field.ErrorList {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return long(v.Elem(), path, errs)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			at := path
			if path != nil {
				if name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); name != "" { // an embedded struct has none
					at = path.Child(name)
				}
			}
			errs = long(v.Field(i), at, errs)
		}
	case reflect.Slice, reflect.Map:
		if v.Len() > MaxList {
			return append(errs, field.TooMany(path, v.Len(), MaxList))
		}
		for i := 0; v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct && i < v.Len(); i++ {
			errs = long(v.Index(i), index(path, i), errs)
		}
	}
	return errs
}
