// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/test/lab"
)

func TestPodDefaultOnARealAPIServer(t *testing.T) {
	config := lab.APIServer(t)
	namespace := lab.Namespace(t, config)
	definitions := all(t)
	extensions := apiextensionsclient.NewForConfigOrDie(config)
	t.Cleanup(func() {
		for _, definition := range definitions {
			if err := extensions.ApiextensionsV1().CustomResourceDefinitions().Delete(context.Background(), definition.Name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
	})
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: definitions, MaxTime: time.Minute}); err != nil {
		t.Fatal(err)
	}
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
	client := dynamic.NewForConfigOrDie(config).Resource(v1alpha1.Resource(v1alpha1.PodDefaultResource)).Namespace(namespace)
	create := func(object map[string]any) (*unstructured.Unstructured, error) {
		return client.Create(t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	}

	t.Run("kubectl explain describes each field", func(t *testing.T) { testExplain(t, config) })

	t.Run("what cannot work is refused without our server", func(t *testing.T) { testInvalid(t, config, namespace) })

	t.Run("Exemptions that exempt from nothing are refused without our server", func(t *testing.T) { testInvalidExemptions(t, config, namespace) })

	t.Run("two owners of one object own different elements", func(t *testing.T) { testOwners(t, config, namespace) })

	t.Run("kubectl knows short names, columns and field selectors", func(t *testing.T) { testNames(t, config, namespace) })

	t.Run("every field that there is is stored as it is", func(t *testing.T) {
		for _, want := range valid(t) {
			object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
			if err != nil {
				t.Fatal(err)
			}
			stored, err := create(object)
			if err != nil {
				t.Errorf("%s: %v", want.Name, err)
				continue
			}
			got := &v1alpha1.PodDefault{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(stored.Object, got, true); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(withDefaults(t, asMap(t, want.Spec)), asMap(t, got.Spec)); diff != "" {
				t.Errorf("%s: spec (-sent +stored):\n%s", want.Name, diff)
			}
		}
	})

	for name, tc := range map[string]struct{ object, refusal string }{
		"an object without spec is accepted": {object: `{metadata: {name: bare}}`},
		"a mount without its volume is accepted": {
			object: `{metadata: {name: mount}, spec: {selector: {}, volumeMounts: [{name: a, mountPath: /a}]}}`,
		},
		"a variable twice in a sidecar is accepted": {
			object: `{metadata: {name: twice}, spec: {selector: {}, sidecars: [{name: a, image: a, env: [{name: x}, {name: x}]}]}}`,
		},
		"an unknown operator in the selector is refused": {
			object:  `{metadata: {name: operator}, spec: {selector: {matchExpressions: [{key: a, operator: Like}]}}}`,
			refusal: "spec.selector.matchExpressions[0].operator",
		},
		"a sidecar without an image is refused": {
			object: `{metadata: {name: imageless}, spec: {selector: {}, sidecars: [{name: a}]}}`, refusal: "spec.sidecars[0].image",
		},
		"a variable with two sources is refused": {
			object:  `{metadata: {name: two}, spec: {selector: {}, env: [{name: a, valueFrom: {fieldRef: {fieldPath: a}, resourceFieldRef: {resource: a}}}]}}`,
			refusal: "spec.env[0].valueFrom",
		},
		"a hook that does two things is refused": {
			object:  `{metadata: {name: hook}, spec: {selector: {}, lifecycle: {preStop: {exec: {command: [a]}, sleep: {seconds: 1}}}}}`,
			refusal: "spec.lifecycle.preStop",
		},
		"an effect that no taint has is refused": {
			object: `{metadata: {name: effect}, spec: {selector: {}, tolerations: [{operator: Exists, effect: Never}]}}`, refusal: "spec.tolerations[0].effect",
		},
		"a port twice in a sidecar is refused by its key": {
			object:  `{metadata: {name: ports}, spec: {selector: {}, sidecars: [{name: a, image: a, ports: [{containerPort: 1}, {containerPort: 1}]}]}}`,
			refusal: "Duplicate",
		},
		"a spec without selector is refused": {
			object: `{metadata: {name: selectorless}, spec: {desc: x}}`, refusal: "spec.selector",
		},
		"a misspelt field is refused in strict mode": {
			object: `{metadata: {name: misspelt}, spec: {selector: {}, volumeMount: []}}`, refusal: "volumeMount",
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

	t.Run("an object from before the rules can be changed", func(t *testing.T) { testBefore(t, extensions, client) })

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
		if diff := cmp.Diff(map[string]any{"observedGeneration": int64(-1)}, stored.Object["status"]); diff != "" {
			t.Errorf("a create stored the status (-default +stored):\n%s", diff)
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

// testBefore stores an object by a definition without rules, brings the rules, and changes
// the object in other places: what has not changed is not judged again.
func testBefore(t *testing.T, extensions apiextensionsclient.Interface, client dynamic.ResourceInterface) {
	definitions := extensions.ApiextensionsV1().CustomResourceDefinitions()
	write := func(change func(*apiextensionsv1.CustomResourceDefinition)) {
		t.Helper()
		definition, err := definitions.Get(t.Context(), "poddefaults.kubeflow.org", metav1.GetOptions{})
		if err == nil {
			change(definition)
			_, err = definitions.Update(t.Context(), definition, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	object := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.PodDefaultKind, "metadata": map[string]any{"name": name},
			"spec": map[string]any{
				"selector":    map[string]any{"matchExpressions": []any{map[string]any{"key": "a", "operator": "Like"}}},
				"sidecars":    []any{map[string]any{"name": "a"}},
				"tolerations": []any{map[string]any{"operator": "Exists", "effect": "Never"}},
			},
		}}
	}
	// The API server takes a moment to go by another definition.
	until := func(refused bool) {
		t.Helper()
		lab.Eventually(t.Context(), t, 30*time.Second, "the definition to count", func(ctx context.Context) (bool, error) {
			_, err := client.Create(ctx, object("probe"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return (err != nil) == refused, nil
		})
	}
	strict := podDefault(t).Spec.Versions
	write(func(definition *apiextensionsv1.CustomResourceDefinition) {
		yes := true
		definition.Spec.Versions[0].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"spec": {Type: "object", XPreserveUnknownFields: &yes}, "status": {Type: "object", XPreserveUnknownFields: &yes},
		}}
		definition.Spec.Versions[0].SelectableFields = nil
	})
	until(false)
	stored, err := client.Create(t.Context(), object("before"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	write(func(definition *apiextensionsv1.CustomResourceDefinition) { definition.Spec.Versions = strict })
	until(true)

	stored.SetLabels(map[string]string{"a": "b"})
	if stored, err = client.Update(t.Context(), stored, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("metadata: %v", err)
	}
	stored.Object["status"] = map[string]any{"observedGeneration": int64(1)}
	if stored, err = client.UpdateStatus(t.Context(), stored, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("status: %v", err)
	}
	spec := stored.Object["spec"].(map[string]any)
	spec["desc"] = "another field"
	if stored, err = client.Update(t.Context(), stored, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("another field: %v", err)
	}
	spec = stored.Object["spec"].(map[string]any)
	spec["tolerations"] = []any{map[string]any{"operator": "Exists"}}
	if stored, err = client.Update(t.Context(), stored, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("a correction: %v", err)
	}
	stored.Object["spec"].(map[string]any)["sidecars"] = []any{map[string]any{"name": "b"}}
	if _, err = client.Update(t.Context(), stored, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("another mistake: %v", err)
	}
}

// withDefaults sets the defaults of the schema in a spec. Go omits a priority of 0.
func withDefaults(t *testing.T, spec map[string]any) map[string]any {
	t.Helper()
	object := map[string]any{"spec": spec}
	defaulting.Default(object, structural(t, podDefault(t).Spec.Versions[0]))
	if spec["priority"] == int64(0) {
		delete(spec, "priority")
	}
	return asMap(t, spec)
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
