// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sallyport-io/sallyport/admission"
)

// Annotations of testManagedFields, and the label of a change between two calls.
const (
	sentMark   = "poddefault.admission.kubeflow.org/poddefault-sent"
	addedMark  = "poddefault.admission.kubeflow.org/poddefault-added"
	addedLabel = "added-between"
)

// testManagedFields shows that managedFields tell what came with a request: what was sent is
// in them, and what a webhook has added is not, whatever the request says there.
func testManagedFields(t *testing.T, w *world) {
	const name = "managed-fields"
	type call struct {
		annotations map[string]string
		fields      []metav1.ManagedFieldsEntry
	}
	calls := &journal[call]{}
	webhook := func(path string, reinvocation admissionregistrationv1.ReinvocationPolicyType, change func(*corev1.Pod)) admission.Webhook {
		mutate := admission.Mutate(func(_ context.Context, pod *corev1.Pod) error { change(pod); return nil })
		return admission.Webhook{
			Name: path + ".managed-fields.sallyport.io", Path: "/" + path, Type: admission.TypeMutating,
			Rules:             admission.Rules(corev1.SchemeGroupVersion.WithResource("pods"), admissionregistrationv1.Create),
			NamespaceSelector: within(name), ReinvocationPolicy: reinvocation, TimeoutSeconds: 30, AllowWedge: "only a namespace of the test",
			Handler: admission.HandlerFunc(func(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
				pod := &metav1.PartialObjectMetadata{}
				if err := json.Unmarshal(req.Object.Raw, pod); err != nil {
					return nil, err
				}
				calls.note(path, call{pod.Annotations, pod.ManagedFields})
				return mutate.Handle(ctx, req)
			}),
		}
	}
	w.namespace(t, name)
	w.serve(t, name, []admission.Webhook{
		// As the webhook for PodDefaults does, it marks the pod.
		webhook("marks", admissionregistrationv1.IfNeededReinvocationPolicy, func(pod *corev1.Pod) {
			pod.Annotations = maps.Clone(pod.Annotations)
			if pod.Annotations == nil {
				pod.Annotations = map[string]string{}
			}
			pod.Annotations[addedMark] = "1"
		}),
		// For a change of this one, the other is called again.
		webhook("changes", admissionregistrationv1.NeverReinvocationPolicy, func(pod *corev1.Pod) {
			pod.Labels = map[string]string{addedLabel: "true"}
		}),
	}, nil)

	forged := func(fields string) string {
		return `[{"manager":"forger","operation":"Update","apiVersion":"v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":` + fields + `}]`
	}
	pods := w.clients.CoreV1().Pods(name)
	create := func(managedFields string) func(*testing.T, *corev1.Pod) error {
		return func(t *testing.T, pod *corev1.Pod) error {
			raw := map[string]any{}
			encoded, err := json.Marshal(pod)
			if err != nil {
				return err
			}
			if err := json.Unmarshal(encoded, &raw); err != nil {
				return err
			}
			raw["apiVersion"], raw["kind"] = "v1", "Pod"
			if managedFields != "" {
				raw["metadata"].(map[string]any)["managedFields"] = json.RawMessage(managedFields)
			}
			body, err := json.Marshal(raw)
			if err != nil {
				return err
			}
			return w.clients.CoreV1().RESTClient().Post().Namespace(name).Resource("pods").Body(body).
				SetHeader("Content-Type", "application/json").Do(t.Context()).Error()
		}
	}
	ways := []struct {
		name string
		// generates is set if the name is generated.
		generates bool
		create    func(*testing.T, *corev1.Pod) error
		// claims is set if the request claims to have sent what it has not.
		claims bool
	}{
		{name: "create", create: func(t *testing.T, pod *corev1.Pod) error {
			_, err := pods.Create(t.Context(), pod, metav1.CreateOptions{FieldManager: "e2e"})
			return err
		}},
		{name: "create with a generated name", generates: true, create: create("")},
		{name: "server-side apply", create: func(t *testing.T, pod *corev1.Pod) error {
			pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
			body, err := json.Marshal(pod)
			if err != nil {
				return err
			}
			force := true
			_, err = pods.Patch(t.Context(), pod.Name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "e2e", Force: &force})
			return err
		}},
		{name: "the dynamic client", create: func(t *testing.T, pod *corev1.Pod) error {
			raw, err := json.Marshal(pod)
			if err != nil {
				return err
			}
			object := &unstructured.Unstructured{Object: map[string]any{}}
			if err := json.Unmarshal(raw, &object.Object); err != nil {
				return err
			}
			object.SetAPIVersion("v1")
			object.SetKind("Pod")
			_, err = w.objects.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(name).Create(t.Context(), object, metav1.CreateOptions{})
			return err
		}},
		{name: "forged: valid fields without annotations", create: create(forged(`{"f:spec":{"f:restartPolicy":{}}}`))},
		{name: "forged: fields of no manager", create: create(`[{}]`)},
		{name: "forged: an empty list", create: create(`[]`)},
		{name: "forged: null", create: create(`null`)},
		{name: "forged: a type that does not exist", create: create(`[{"manager":"forger","operation":"Update","fieldsType":"FieldsV9","fieldsV1":{"f:spec":{}}}]`)},
		{name: "forged: fields that cannot be decoded", create: create(forged(`{"x:metadata":{"f:annotations":7}}`))},
		{name: "forged: no fields", create: create(forged(`null`))},
		{name: "forged: an applier", create: create(strings.Replace(forged(`{"f:spec":{"f:restartPolicy":{}}}`), "Update", "Apply", 1))},
		{name: "forged: another version", create: create(strings.Replace(forged(`{"f:metadata":{"f:annotations":{}}}`), `"v1"`, `"v9"`, 1))},
		{name: "forged: more than was sent", claims: true, create: create(forged(`{"f:metadata":{"f:annotations":{"f:` + addedMark + `":{}}}}`))},
		{name: "forged: much more, by many managers", claims: true, create: create("[" + strings.Repeat(strings.Trim(forged(`{"f:metadata":{"f:annotations":{"f:`+addedMark+`":{}},"f:labels":{"f:x":{}}}}`), "[]")+",", 20) + "{}]")},
	}
	for i, way := range ways {
		for _, marked := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, marked %v", way.name, marked), func(t *testing.T) {
				calls.take()
				pod := simplePod(name, fmt.Sprintf("pod-%d-%v", i, marked))
				if way.generates {
					pod.GenerateName, pod.Name = pod.Name+"-", ""
				}
				pod.Labels = nil // the label is the change between the calls
				if pod.Annotations = map[string]string{"other": "annotation"}; marked {
					pod.Annotations[sentMark] = "1"
				}
				if err := way.create(t, pod); err != nil {
					t.Fatal(err)
				}
				noted := calls.take()
				all := slices.Concat(noted["marks"], noted["changes"])
				if len(all) != 3 {
					t.Fatalf("%d calls, want 2 of the webhook that marks and 1 of the other", len(all))
				}
				seen := 0 // calls with the added mark
				for n, c := range all {
					told, keys := annotationsIn(t, c.fields)
					if _, there := c.annotations[addedMark]; there {
						seen++
					}
					if !told {
						t.Errorf("call %d: managedFields tell nothing: %v", n, c.fields)
					}
					if slices.Contains(keys, sentMark) != marked {
						t.Errorf("call %d: was the mark sent? %v, but managedFields have %q", n, marked, keys)
					}
					if !way.claims && slices.Contains(keys, addedMark) {
						t.Errorf("call %d: managedFields have what the webhook added: %q", n, keys)
					}
				}
				if seen != 2 { // of the second webhook, and the second of the first
					t.Errorf("%d of 3 calls had the added mark, want 2", seen)
				}
			})
		}
	}
}

// annotationsIn returns the annotations in managed fields, and whether there are any fields.
func annotationsIn(t *testing.T, entries []metav1.ManagedFieldsEntry) (told bool, keys []string) {
	t.Helper()
	for _, e := range entries {
		if e.FieldsV1 == nil {
			continue
		}
		told = true
		var fields struct {
			Metadata struct {
				Annotations map[string]json.RawMessage `json:"f:annotations"`
			} `json:"f:metadata"`
		}
		if err := json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields); err != nil {
			t.Fatal(err)
		}
		for key := range fields.Metadata.Annotations {
			keys = append(keys, strings.TrimPrefix(key, "f:"))
		}
	}
	return told, keys
}
