// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"reflect"
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
	if value := reflect.ValueOf(spec).Elem(); len(specLengths().long(value, nil, nil)) > 0 {
		errs = specLengths().long(value, path, nil)
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
	name  string // empty: an embedded struct, whose fields belong to the type
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
			f := t.Field(i)
			if !f.IsExported() {
				continue
			}
			if below := lengthsOf(f.Type); below != nil {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				plan.fields = append(plan.fields, lengthField{i, name, below})
			}
		}
	}
	if !plan.counts && len(plan.fields) == 0 {
		return nil
	}
	return plan
}

// long reports lists and maps at any depth with too many elements.
func (p *lengthPlan) long(v reflect.Value, path *field.Path, errs field.ErrorList) field.ErrorList {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return p.long(v.Elem(), path, errs)
		}
	case reflect.Struct:
		for _, f := range p.fields {
			at := path
			if f.name != "" {
				at = child(path, f.name)
			}
			errs = f.below.long(v.Field(f.index), at, errs)
		}
	case reflect.Slice, reflect.Map:
		if v.Len() > MaxList {
			return append(errs, field.TooMany(path, v.Len(), MaxList))
		}
		if len(p.fields) == 0 { // of its elements
			return errs
		}
		for i := range v.Len() {
			errs = p.long(v.Index(i), index(path, i), errs)
		}
	}
	return errs
}
