// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"math/rand"
	"reflect"
	"runtime"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/sallyport-io/sallyport/jsonpatch"
)

// Everything that can be changed in an object through its fields is changed, one after
// the other, and each change must be seen.
func TestImprintSeesEveryChange(t *testing.T) {
	random := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(2), serializer.NewCodecFactory(apiruntime.NewScheme()))
	for _, empty := range []func() apiruntime.Object{
		func() apiruntime.Object { return &corev1.Pod{} },
		func() apiruntime.Object { return &corev1.Secret{} },
		func() apiruntime.Object { return &appsv1.Deployment{} },
		func() apiruntime.Object { return &oddities{} },
	} {
		target := targetFor(reflect.TypeOf(empty()))
		changes, opaque := 0, 0
		for range 5 {
			object := empty()
			if _, ok := object.(*oddities); !ok {
				random.Fill(object)
			}
			raw, err := json.Marshal(object)
			if err != nil {
				continue
			}
			for at := 0; ; at++ {
				m := &imprint{}
				read, err := target.decodeMarked(raw, "object", m)
				if err != nil {
					t.Fatalf("%T: %v", object, err)
				}
				if m.opaque {
					opaque++
					break
				}
				if !m.unchanged() {
					t.Fatalf("%T: nothing was changed, and a change is seen in %s", object, raw)
				}
				c := changer{at: at}
				c.value(reflect.ValueOf(read).Elem(), "")
				if c.done == "" {
					break
				}
				changes++
				if m.unchanged() {
					t.Fatalf("%T: the change of %s is not seen in %s", object, c.done, raw)
				}
			}
		}
		if _, odd := empty().(*oddities); !odd && changes < 100 {
			t.Errorf("%T: only %d changes were tried, %d objects were opaque", empty(), changes, opaque)
		}
	}
}

// A changer makes the change with a number in an object.
type changer struct {
	at   int
	done string
}

// value visits everything that a value holds.
func (c *changer) value(v reflect.Value, path string) {
	if c.done != "" {
		return
	}
	if v.CanSet() {
		if c.at == 0 {
			other := reflect.New(v.Type()).Elem()
			switch v.Kind() {
			case reflect.String:
				other.SetString(v.String() + "x")
			case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
				other.SetInt(v.Int() ^ 1)
			case reflect.Bool:
				other.SetBool(!v.Bool())
			case reflect.Uint8:
				other.SetUint(v.Uint() ^ 1)
			case reflect.Slice:
				other.Set(reflect.Append(v, reflect.New(v.Type().Elem()).Elem()))
			case reflect.Pointer:
				if v.IsNil() {
					other.Set(reflect.New(v.Type().Elem()))
				}
			case reflect.Map:
				if v.Len() > 0 { // in place, to a copy of what any entry is
					key := v.MapKeys()[0]
					v.SetMapIndex(key, reflect.Value{})
					c.done = path + " (an entry less)"
					return
				}
				other.Set(reflect.MakeMap(v.Type()))
				if !v.IsNil() {
					other.SetZero()
				}
			default:
				c.at++ // not a change of its own
			}
			if c.at == 0 {
				v.Set(other)
				c.done = path
				return
			}
		}
		c.at--
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				c.value(v.Field(i), path+"."+v.Type().Field(i).Name)
			}
		}
	case reflect.Pointer:
		if !v.IsNil() && v.Type() != reflect.TypeFor[*time.Location]() {
			c.value(v.Elem(), path)
		}
	case reflect.Slice:
		for i := range v.Len() {
			c.value(v.Index(i), path+"[]")
		}
	}
}

// A handler that changes what an imprint may not cover, or changes everything, has its
// changes in the patch all the same, call after call.
func TestMutateSeesChangesInPlace(t *testing.T) {
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"q\"uoted": "li\nne"}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "c", Env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}},
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
					"cpu": resource.MustParse("100m"), "memory": resource.MustParse("123456789012345678901234567890"),
				}},
				LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("http")}}},
			}},
			NodeSelector: map[string]string{},
		},
	}
	raw, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		change func(*corev1.Pod)
		want   string
	}{
		{"nothing", func(*corev1.Pod) {}, ""},
		{"a label", func(p *corev1.Pod) { p.Labels["a"] = "c" }, "/metadata/labels/a"},
		{"an annotation with escapes", func(p *corev1.Pod) { p.Annotations["q\"uoted"] = "other" }, "/metadata/annotations/q\"uoted"},
		{"a label more", func(p *corev1.Pod) { p.Labels["b"] = "c" }, "/metadata/labels/b"},
		{"an element in place", func(p *corev1.Pod) { p.Spec.Containers[0].Env[1].Value = "3" }, "/spec/containers/0/env/1/value"},
		{"the order of elements", func(p *corev1.Pod) {
			env := p.Spec.Containers[0].Env
			env[0], env[1] = env[1], env[0]
		}, "/spec/containers/0/env/0"}, // where the second one moves to
		{"a small quantity", func(p *corev1.Pod) {
			q := p.Spec.Containers[0].Resources.Limits["cpu"]
			q.Add(resource.MustParse("1"))
			p.Spec.Containers[0].Resources.Limits["cpu"] = q
		}, "/spec/containers/0/resources/limits/cpu"},
		{"a quantity that points to its digits", func(p *corev1.Pod) {
			q := p.Spec.Containers[0].Resources.Limits["memory"]
			q.Add(resource.MustParse("1"))
			p.Spec.Containers[0].Resources.Limits["memory"] = q
		}, "/spec/containers/0/resources/limits/memory"},
		{"a value behind pointers", func(p *corev1.Pod) {
			p.Spec.Containers[0].LivenessProbe.TCPSocket.Port.StrVal = "https"
		}, "/spec/containers/0/livenessProbe/tcpSocket/port"},
		{"the whole", func(p *corev1.Pod) { *p = corev1.Pod{ObjectMeta: p.ObjectMeta, Spec: p.Spec}; p.Spec.Hostname = "h" }, "/spec/hostname"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			handler := Mutate(func(_ context.Context, p *corev1.Pod) error {
				tc.change(p)
				runtime.GC() // what the imprint refers to must still be there
				return nil
			})
			req := &admissionv1.AdmissionRequest{Operation: admissionv1.Create}
			req.Object.Raw = raw
			var first jsonpatch.Patch
			for i := range 3 {
				resp, err := handler.Handle(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					first = resp.Patch
				}
				if !reflect.DeepEqual(resp.Patch, first) {
					t.Fatalf("call %d: %v, the first: %v", i, resp.Patch, first)
				}
			}
			switch {
			case tc.want == "" && len(first) > 0, tc.want != "" && (len(first) != 1 || first[0].Path != tc.want):
				t.Fatalf("got %v, want a change of %q", first, tc.want)
			}
		})
	}
}
