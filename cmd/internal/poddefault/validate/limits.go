// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"reflect"
	"slices"
	"strings"
	"sync"

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
	if value := reflect.ValueOf(spec).Elem(); specLengths().exceeded(value) {
		errs = longLists(value, path, nil)
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

// A lengthPlan locates lists and maps in values of a type; nil if there are none.
type lengthPlan struct {
	counts bool // values are lists or maps
	fields []lengthField
}

type lengthField struct {
	index int
	below *lengthPlan
}

var specLengths = sync.OnceValue(func() *lengthPlan { return lengthsOf(typeOf[kubeflowv1alpha1.PodDefaultSpec]()) })

func lengthsOf(t reflect.Type) *lengthPlan {
	plan := &lengthPlan{}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Map {
		return &lengthPlan{counts: true}
	}
	if t.Kind() == reflect.Slice {
		plan.counts = true
		for t = t.Elem(); t.Kind() == reflect.Pointer; {
			t = t.Elem()
		}
	}
	if t.Kind() == reflect.Struct {
		for i := range t.NumField() {
			if !t.Field(i).IsExported() {
				continue
			}
			if below := lengthsOf(t.Field(i).Type); below != nil {
				plan.fields = append(plan.fields, lengthField{i, below})
			}
		}
	}
	if !plan.counts && len(plan.fields) == 0 {
		return nil
	}
	return plan
}

// exceeded reports whether [longLists] has anything to report.
func (p *lengthPlan) exceeded(v reflect.Value) bool {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return false
		}
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Map:
		return v.Len() > MaxList
	case reflect.Slice:
		if v.Len() > MaxList || len(p.fields) == 0 {
			return v.Len() > MaxList
		}
		for i := range v.Len() {
			if p.below(v.Index(i)) {
				return true
			}
		}
		return false
	}
	return p.below(v)
}

func (p *lengthPlan) below(v reflect.Value) bool {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return false
		}
		v = v.Elem()
	}
	for _, f := range p.fields {
		if f.below.exceeded(v.Field(f.index)) {
			return true
		}
	}
	return false
}

// longLists reports lists and maps at any depth with too many elements.
func longLists(v reflect.Value, path *field.Path, errs field.ErrorList) field.ErrorList {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return longLists(v.Elem(), path, errs)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			structField := v.Type().Field(i)
			name, _, _ := strings.Cut(structField.Tag.Get("json"), ",")
			switch {
			case !structField.IsExported():
			case name == "": // inlined
				errs = longLists(v.Field(i), path, errs)
			default:
				errs = longLists(v.Field(i), path.Child(name), errs)
			}
		}
	case reflect.Slice, reflect.Map:
		if v.Len() > MaxList {
			return append(errs, field.TooMany(path, v.Len(), MaxList))
		}
		if kind := v.Type().Elem().Kind(); v.Kind() == reflect.Slice && slices.Contains([]reflect.Kind{reflect.Struct, reflect.Pointer}, kind) {
			for i := range v.Len() {
				errs = longLists(v.Index(i), path.Index(i), errs)
			}
		}
	}
	return errs
}
