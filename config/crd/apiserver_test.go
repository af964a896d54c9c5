// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/sallyporttest"
)

func TestPodDefaultOnTheAPIServer(t *testing.T) {
	config := sallyporttest.StartAPIServer(t, sallyporttest.WithCRDs(all(t)...))

	extensions := apiextensionsclient.NewForConfigOrDie(config)
	installed, err := extensions.ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), "poddefaults.kubeflow.org", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	conditions := map[apiextensionsv1.CustomResourceDefinitionConditionType]apiextensionsv1.ConditionStatus{}
	for _, condition := range installed.Status.Conditions {
		conditions[condition.Type] = condition.Status
	}
	if conditions[apiextensionsv1.Established] != apiextensionsv1.ConditionTrue || conditions[apiextensionsv1.NonStructuralSchema] == apiextensionsv1.ConditionTrue {
		t.Errorf("conditions %v", conditions)
	}
	client := dynamic.NewForConfigOrDie(config).Resource(v1alpha1.Resource(v1alpha1.PodDefaultResource)).Namespace("default")
	create := func(object map[string]any) (*unstructured.Unstructured, error) {
		return client.Create(t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	}

	t.Run("an object with every field is stored as it is", func(t *testing.T) {
		want := &v1alpha1.PodDefault{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.PodDefaultKind},
			ObjectMeta: metav1.ObjectMeta{Name: "everything"},
		}
		filler().Fill(&want.Spec)
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := create(object)
		if err != nil {
			t.Fatal(err)
		}
		got := &v1alpha1.PodDefault{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(stored.Object, got, true); err != nil {
			t.Fatal(err)
		}
		wantJSON, gotJSON := asMap(t, want.Spec), asMap(t, got.Spec)
		if diff := cmp.Diff(wantJSON, gotJSON); diff != "" {
			t.Errorf("spec (-sent +stored):\n%s", diff)
		}
	})

	for name, tc := range map[string]struct{ object, refusal string }{
		"an object without spec is accepted": {object: `{metadata: {name: bare}}`},
		"a mount without its volume is accepted": {
			object: `{metadata: {name: mount}, spec: {selector: {}, volumeMounts: [{name: a, mountPath: /a}]}}`,
		},
		"a variable twice in a sidecar is accepted": {
			object: `{metadata: {name: twice}, spec: {selector: {}, sidecars: [{name: a, env: [{name: x}, {name: x}]}]}}`,
		},
		"an unknown operator in the selector is accepted": {
			object: `{metadata: {name: operator}, spec: {selector: {matchExpressions: [{key: a, operator: Like}]}}}`,
		},
		"a spec without selector is refused": {
			object: `{metadata: {name: selectorless}, spec: {desc: x}}`, refusal: "spec.selector",
		},
		"a misspelt field is refused in strict mode": {
			object: `{metadata: {name: misspelt}, spec: {selector: {}, volumeMount: []}}`, refusal: "volumeMount",
		},
		"a port twice in a sidecar is refused": {
			object:  `{metadata: {name: ports}, spec: {selector: {}, sidecars: [{name: a, ports: [{containerPort: 1}, {containerPort: 1}]}]}}`,
			refusal: "Duplicate",
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := map[string]any{}
			if err := yaml.Unmarshal([]byte(tc.object), &object); err != nil {
				t.Fatal(err)
			}
			object["apiVersion"], object["kind"] = v1alpha1.GroupVersion.String(), v1alpha1.PodDefaultKind
			_, err := create(object)
			switch {
			case tc.refusal == "" && err != nil:
				t.Error(err)
			case tc.refusal != "" && (err == nil || !strings.Contains(err.Error(), tc.refusal)):
				t.Errorf("got %v, want a refusal that names %q", err, tc.refusal)
			case tc.refusal != "" && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err):
				t.Errorf("refused with %v", err)
			}
		})
	}

	t.Run("status is written through its subresource only", func(t *testing.T) {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.PodDefaultKind,
			"metadata": map[string]any{"name": "status"},
			"spec":     map[string]any{"selector": map[string]any{}},
			"status":   map[string]any{"observedGeneration": int64(1)},
		}}
		stored, err := client.Create(t.Context(), object, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if status, ok := stored.Object["status"]; ok {
			t.Errorf("a create stored the status %v", status)
		}
		stored.Object["status"] = map[string]any{"observedGeneration": int64(1)}
		if stored, err = client.UpdateStatus(t.Context(), stored, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if got, _, _ := unstructured.NestedInt64(stored.Object, "status", "observedGeneration"); got != 1 {
			t.Errorf("observedGeneration is %d", got)
		}
	})
}

func TestSchemeKnowsPodDefault(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"PodDefault", "PodDefaultList"} {
		if _, err := scheme.New(v1alpha1.Kind(kind)); err != nil {
			t.Error(err)
		}
	}
	original := &v1alpha1.PodDefault{Spec: v1alpha1.PodDefaultSpec{Env: []corev1.EnvVar{{Name: "a"}}}}
	original.DeepCopy().Spec.Env[0].Name = "b"
	if original.Spec.Env[0].Name != "a" {
		t.Error("a deep copy shares memory with the original")
	}
}

func asMap(t *testing.T, value any) map[string]any {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
