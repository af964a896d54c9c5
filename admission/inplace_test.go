// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"reflect"
	"runtime"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/sallyport-io/sallyport/jsonpatch"
)

// A handler that changes what a type that reads itself holds, or changes everything, has its
// changes in the patch anyway, call after call.
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
				runtime.GC()
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
					t.Fatalf("call %d: %s, the first: %s", i, resp.Patch, first)
				}
			}
			switch {
			case tc.want == "" && len(first) > 0, tc.want != "" && (len(first) != 1 || first[0].Path != tc.want):
				t.Fatalf("got %s, want a change of %q", first, tc.want)
			}
		})
	}
}

// An app has an image that reads "name" too.
type app struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Image             image `json:"image"`
}

func (a *app) DeepCopyObject() apiruntime.Object { c := *a; return &c }

type image struct {
	Name string `json:"name"`
	Tag  string `json:"tag,omitempty"`
}

func (i *image) UnmarshalJSON(raw []byte) error {
	if raw[0] == '"' {
		return json.Unmarshal(raw, &i.Name)
	}
	type plain image
	return json.Unmarshal(raw, (*plain)(i))
}

func TestMutateSetsADefaultBelowAShortForm(t *testing.T) {
	handler := Mutate(func(_ context.Context, a *app) error {
		if a.Image.Tag == "" {
			a.Image.Tag = "latest"
		}
		return nil
	})
	for raw, want := range map[string]string{
		`{"metadata":{},"image":"nginx"}`:                      `[{"op":"add","path":"/image","value":{"name":"nginx","tag":"latest"}}]`,
		`{"metadata":{},"image":{"name":"nginx","x":1}}`:       `[{"op":"add","path":"/image/tag","value":"latest"}]`,
		`{"metadata":{},"image":{"name":"nginx","tag":"1.2"}}`: `[]`,
	} {
		for call := range 3 {
			req := &admissionv1.AdmissionRequest{Operation: admissionv1.Create}
			req.Object.Raw = []byte(raw)
			resp, err := handler.Handle(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(resp.Patch.AppendJSON(nil)); got != want {
				t.Errorf("%s, call %d: got %s\nwant %s", raw, call, got, want)
			}
		}
	}
}
