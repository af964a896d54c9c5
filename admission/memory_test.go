// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sallyport-io/sallyport/admission"
)

// A handler may put a new value where an old one was collected: at the same address, of
// the same length. That is a change like any other.
func TestMutateSeesAChangeWhereMemoryWasCollected(t *testing.T) {
	const raw = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","annotations":{"note":"tab\tand \"quotes\""}},` +
		`"spec":{"hostname":"a\tb\tc\td","containers":[{"name":"c","livenessProbe":{"httpGet":{"port":"portname"}}}]}}`
	for name, change := range map[string]func(pod *corev1.Pod, get func(was string) string){
		"a string with escapes": func(pod *corev1.Pod, get func(string) string) { pod.Spec.Hostname = get(pod.Spec.Hostname) },
		"an entry of a map": func(pod *corev1.Pod, get func(string) string) {
			note := pod.Annotations["note"]
			delete(pod.Annotations, "note")
			pod.Annotations["note"] = get(note)
		},
		"a type that reads itself": func(pod *corev1.Pod, get func(string) string) {
			port := &pod.Spec.Containers[0].LivenessProbe.HTTPGet.Port
			port.StrVal = get(port.StrVal)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for call := range 50 {
				handler := admission.Mutate(func(_ context.Context, pod *corev1.Pod) error {
					change(pod, func(was string) string {
						length := len(was)
						change(pod, func(string) string { return "" }) // lets go of it
						runtime.GC()
						return fmt.Sprintf("%0*d", length, call)
					})
					return nil
				})
				if resp := allowed(t, handler, requestFor(t, admissionv1.Create, raw)); len(resp.Patch) != 1 {
					t.Fatalf("call %d: the patch is %s", call, resp.Patch.AppendJSON(nil))
				}
			}
		})
	}
}

// What a handler keeps of an object keeps nothing else of the request.
func TestWhatAHandlerKeepsIsAllThatIsKept(t *testing.T) {
	const objects, most = 200, 300 << 10 // bytes
	filler := strings.Repeat("0123456789", 90_000)
	var kept []string
	keep := func(strings ...string) { kept = append(kept, strings...) }
	for name, handler := range map[string]admission.Handler{
		"a mutator": admission.Mutate(func(_ context.Context, c *corev1.ConfigMap) error {
			keep(c.Name, c.Labels["app"])
			return nil
		}),
		"a mutator that changes the object": admission.Mutate(func(_ context.Context, c *corev1.ConfigMap) error {
			keep(c.Name, c.Labels["app"])
			c.Labels["app"] = "other"
			return nil
		}),
		"a validator": admission.Validate(func(_ context.Context, c *corev1.ConfigMap) error {
			for key := range c.Labels {
				keep(c.Name, key)
			}
			return nil
		}),
		"metadata alone": admission.Validate(func(_ context.Context, c *metav1.PartialObjectMetadata) error {
			keep(c.Name, c.Labels["app"])
			return nil
		}),
		"a tree": admission.Validate(func(_ context.Context, c *unstructured.Unstructured) error {
			keep(c.GetName(), c.GetLabels()["app"])
			return nil
		}),
	} {
		t.Run(name, func(t *testing.T) {
			kept = make([]string, 0, 2*objects)
			before := heap()
			for i := range objects {
				req := &admissionv1.AdmissionRequest{UID: "u", Operation: admissionv1.Create, Kind: metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}}
				req.Object.Raw = fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"map-%d","labels":{"app":"x-%d"}},"data":{"filler":"%s"}}`, i, i, filler)
				allowed(t, handler, req)
			}
			if grown := heap() - before; grown > most {
				t.Errorf("%d names of objects of %d KB keep %d KB", objects, len(filler)>>10, grown>>10)
			}
			runtime.KeepAlive(kept)
		})
	}
}

// heap is what is in use after a collection.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what is in pools goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
