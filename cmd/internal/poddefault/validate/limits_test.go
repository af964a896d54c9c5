// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"fmt"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

var specPath = field.NewPath("spec")

// TestNoListIsOverlooked makes each list and map of a spec too long, one at a time.
func TestNoListIsOverlooked(t *testing.T) {
	var spec kubeflowv1alpha1.PodDefaultSpec
	lists := 0
	var visit func(v reflect.Value)
	check := func() {
		lists++
		if reported := long(reflect.ValueOf(&spec).Elem(), specPath, nil); len(reported) != 1 {
			t.Errorf("list %d: %v", lists, reported)
		}
	}
	visit = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
			visit(v.Elem())
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					visit(v.Field(i))
				}
			}
		case reflect.Map:
			v.Set(reflect.MakeMap(v.Type()))
			for i := range MaxList + 1 {
				v.SetMapIndex(reflect.ValueOf(fmt.Sprint(i)).Convert(v.Type().Key()), reflect.Zero(v.Type().Elem()))
			}
			check()
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), MaxList+1, MaxList+1))
			check()
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			visit(v.Index(0))
		default:
			return
		}
		v.SetZero()
	}
	visit(reflect.ValueOf(&spec).Elem())
	if lists < 100 {
		t.Errorf("%d lists", lists)
	}
}
