// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/serving"
)

// testEquivalentVersions has objects of two versions, which converters of the same server
// convert, and webhooks whose rules name the first, the second or both.
func testEquivalentVersions(t *testing.T, w *world) {
	const name = "equivalents"
	kind := schema.GroupKind{Group: "shapes.example.com", Kind: "Equivalent"}
	converter := renaming(kind)
	heard := &journal[shape]{}
	listen := func(name string, policy admissionregistrationv1.MatchPolicyType, versions ...string) admission.Webhook {
		grow := admission.Mutate(func(_ context.Context, object *unstructured.Unstructured) error {
			field := fieldOf[object.GroupVersionKind().Version]
			value, _, err := unstructured.NestedString(object.Object, field)
			if err != nil {
				return err
			}
			return unstructured.SetNestedField(object.Object, value+" "+name, field)
		})
		return admission.Webhook{
			Name: name + ".sallyport.io", Path: "/" + name, Type: admission.TypeMutating, MatchPolicy: policy,
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy, TimeoutSeconds: 30,
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{kind.Group}, APIVersions: versions, Resources: []string{"equivalents"}},
			}},
			Handler: admission.HandlerFunc(func(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
				heard.note(name, shapeOf(req))
				return grow.Handle(ctx, req)
			}),
		}
	}
	const exact, equivalent = admissionregistrationv1.Exact, admissionregistrationv1.Equivalent
	webhooks := append([]admission.Webhook{
		listen("exact-1", exact, "v1"), listen("exact-2", exact, "v2"),
		listen("equivalent-1", equivalent, "v1"), listen("equivalent-2", equivalent, "v2"), listen("both", equivalent, "v1", "v2"),
	}, probes(name)...)
	app, err := sallyport.New(name, sallyport.WithWebhooks(webhooks...), sallyport.WithConverters(converter))
	if err != nil {
		t.Fatal(err)
	}
	server := w.start(t, nil, app, serving.DefaultOptions(), nil)
	w.define(t, server, converter, "v1")
	w.register(t, name, server, webhooks)
	w.namespace(t, name)

	for _, tc := range []struct {
		asked string
		as    map[string]string // the version in which each webhook hears of it
		value string
	}{
		{"v1", map[string]string{"exact-1": "v1", "equivalent-1": "v1", "equivalent-2": "v2", "both": "v1"}, "set exact-1 equivalent-1 equivalent-2 both"},
		{"v2", map[string]string{"exact-2": "v2", "equivalent-1": "v1", "equivalent-2": "v2", "both": "v2"}, "set exact-2 equivalent-1 equivalent-2 both"},
	} {
		t.Run(tc.asked, func(t *testing.T) {
			heard.take()
			client := w.objects.Resource(kind.WithVersion(tc.asked).GroupVersion().WithResource("equivalents")).Namespace(name)
			object := example(kind, tc.asked, "one-"+tc.asked, "set")
			created, err := client.Create(t.Context(), object, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := created.Object[fieldOf[tc.asked]]; got != tc.value {
				t.Errorf("the value is %q, want %q", got, tc.value)
			}
			got := heard.take()
			if len(got) != len(tc.as) {
				t.Errorf("called were %v", got)
			}
			for webhook, version := range tc.as {
				if len(got[webhook]) != 1 {
					t.Errorf("%s was called %d times", webhook, len(got[webhook]))
					continue
				}
				heard := got[webhook][0]
				if heard.Kind.Version != version || heard.Resource.Version != version || heard.Object != describeKind(kind.WithVersion(version)) ||
					heard.RequestKind.Version != tc.asked || heard.RequestResource.Version != tc.asked {
					t.Errorf("%s heard %+v, want version %s of what was asked in %s", webhook, heard, version, tc.asked)
				}
			}
		})
	}
}
