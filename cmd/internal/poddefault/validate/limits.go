// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// Limits for one object. They are far above what any pod needs, and exclude only what
// no stored pod could contain, because an object is added to the pod as a whole.
const (
	// maxSpec limits the JSON size of a spec in bytes. etcd stores 1.5 MiB of a pod.
	maxSpec = 1 << 20
	// maxList limits the elements of each list and map.
	maxList = 2000
	// maxBrought limits the init containers, and the sidecars, of an object.
	maxBrought = 100
)

// limits reports exceeded limits. If there are any, nothing else is checked.
func limits(spec *kubeflowv1alpha1.PodDefaultSpec, size int, path *field.Path) (errs field.ErrorList) {
	if size > maxSpec {
		return field.ErrorList{field.TooLong(path, "", maxSpec)}
	}
	// Build paths only if there is something to report.
	if value := reflect.ValueOf(spec).Elem(); specLengths().exceeded(value) {
		errs = longLists(value, path, nil)
	}
	for _, list := range []struct {
		name string
		n    int
	}{{"initContainers", len(spec.InitContainers)}, {"sidecars", len(spec.Sidecars)}} {
		if list.n > maxBrought {
			errs = append(errs, field.TooMany(path.Child(list.name), list.n, maxBrought))
		}
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return errs
	}
	if n := len(spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms); n > maxNodeTerms {
		errs = append(errs, field.TooMany(path.Child("affinity", "nodeAffinity", required, "nodeSelectorTerms"), n, maxNodeTerms))
	}
	return errs
}

// encodedSpec encodes a spec as JSON.
func encodedSpec(spec *kubeflowv1alpha1.PodDefaultSpec) []byte {
	buffer := encoding.Get().(*[]byte)
	defer encoding.Put(buffer)
	encoded, err := jsonpatch.AppendValue((*buffer)[:0], spec)
	if err != nil { // values decoded from JSON can be encoded
		return make([]byte, maxSpec+1)
	}
	if cap(encoded) <= 64<<10 {
		*buffer = encoded
	}
	return slices.Clone(encoded)
}

var encoding = sync.Pool{New: func() any { return new([]byte) }}

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
		return v.Len() > maxList
	case reflect.Slice:
		if v.Len() > maxList || len(p.fields) == 0 {
			return v.Len() > maxList
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
		if v.Len() > maxList {
			return append(errs, field.TooMany(path, v.Len(), maxList))
		}
		if kind := v.Type().Elem().Kind(); v.Kind() == reflect.Slice && slices.Contains([]reflect.Kind{reflect.Struct, reflect.Pointer}, kind) {
			for i := range v.Len() {
				errs = longLists(v.Index(i), path.Index(i), errs)
			}
		}
	}
	return errs
}
