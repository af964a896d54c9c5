// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

func TestWhatIsTooMuchIsRefusedWhenItIsWritten(t *testing.T) {
	for field, change := range map[string]func(*kubeflowv1alpha1.PodDefaultSpec){
		"spec.env: Too many": func(s *kubeflowv1alpha1.PodDefaultSpec) { s.Env = variables(maxList+1, 1, "x") },
		"spec.sidecars[0].env: Too many": func(s *kubeflowv1alpha1.PodDefaultSpec) {
			s.Sidecars = []corev1.Container{{Env: variables(maxList+1, 1, "x")}}
		},
		"spec.sidecars: Too many":     func(s *kubeflowv1alpha1.PodDefaultSpec) { s.Sidecars = make([]corev1.Container, maxBrought+1) },
		"nodeSelectorTerms: Too many": func(s *kubeflowv1alpha1.PodDefaultSpec) { s.Affinity = nodeTermsOf(maxNodeTerms+1, "k") },
		"spec: Too long":              func(s *kubeflowv1alpha1.PodDefaultSpec) { s.Env = variables(1, maxSpec, "x") },
	} {
		pd := hostileObject("large", change)
		errs, _ := Check(&pd.Spec, specPath)
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), field) {
			t.Errorf("%s: %.300v", field, errs)
		}
		if c := Compile(pd); c.Problem() == nil || len(c.env)+len(c.containers)+len(c.nodeTerms) > 0 {
			t.Errorf("%s: the object is compiled: %.300v", field, c.Problem())
		}
	}
}

var specPath = field.NewPath("spec")

// TestNoListIsOverlooked makes each list and map of a spec too long, one at a time,
// because most specs are checked without paths, and that check must cover every list.
func TestNoListIsOverlooked(t *testing.T) {
	var spec kubeflowv1alpha1.PodDefaultSpec
	lists := 0
	var visit func(v reflect.Value)
	check := func() {
		lists++
		if reported := longLists(reflect.ValueOf(&spec).Elem(), specPath, nil); len(reported) != 1 {
			t.Errorf("%v", reported)
		} else if !specLengths().exceeded(reflect.ValueOf(&spec).Elem()) {
			t.Errorf("overlooked: %s", reported[0].Field)
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
			for i := range maxList + 1 {
				v.SetMapIndex(reflect.ValueOf(fmt.Sprint(i)).Convert(v.Type().Key()), reflect.Zero(v.Type().Elem()))
			}
			check()
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), maxList+1, maxList+1))
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
