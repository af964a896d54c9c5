// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/test/lab"
)

// An invalidObject is one of testdata/invalid.yaml.
type invalidObject struct {
	Name   string         `json:"name"`
	Kind   string         `json:"kind"`
	Path   string         `json:"path"`
	Server bool           `json:"server"`
	Spec   map[string]any `json:"spec"`
}

func invalidObjects(t *testing.T) (out []invalidObject) {
	t.Helper()
	data, err := os.ReadFile("testdata/invalid.yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(data, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// resourceOf returns a client for a kind, and an object of it.
func resourceOf(config *rest.Config, namespace, kind string) (dynamic.ResourceInterface, *unstructured.Unstructured) {
	client := dynamic.NewForConfigOrDie(config)
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetName("written")
	if kind == sallyportv1alpha1.ClusterPodDefaultKind {
		object.SetGroupVersionKind(sallyportv1alpha1.Kind(kind))
		return client.Resource(sallyportv1alpha1.Resource(sallyportv1alpha1.ClusterPodDefaultResource)), object
	}
	object.SetGroupVersionKind(v1alpha1.Kind(v1alpha1.PodDefaultKind))
	object.SetNamespace(namespace)
	return client.Resource(v1alpha1.Resource(v1alpha1.PodDefaultResource)).Namespace(namespace), object
}

// testInvalid writes what cannot work to an API server that has the definitions, and no server of ours.
func testInvalid(t *testing.T, config *rest.Config, namespace string) {
	refused := 0
	for _, invalid := range invalidObjects(t) {
		client, object := resourceOf(config, namespace, invalid.Kind)
		if invalid.Spec["selector"] == nil {
			invalid.Spec["selector"] = map[string]any{}
		}
		object.Object["spec"] = invalid.Spec
		_, err := client.Create(t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
		if invalid.Server { // only by the server: see TestPodDefaultsUnderControl
			if err != nil {
				t.Errorf("%s: the API server refuses it without a server: %v", invalid.Name, err)
			}
			continue
		}
		refused++
		// A type error is a line of its own, with the path in another form.
		if !apierrors.IsInvalid(err) || !slices.ContainsFunc(causes(err), func(c metav1.StatusCause) bool { return c.Field == invalid.Path }) {
			t.Errorf("%s: got %v, want a refusal of %s", invalid.Name, err, invalid.Path)
		}
	}
	// What works is accepted, as a ClusterPodDefault too.
	for _, pd := range valid(t) {
		client, object := resourceOf(config, namespace, sallyportv1alpha1.ClusterPodDefaultKind)
		object.Object["spec"] = asMap(t, pd.Spec)
		if _, err := client.Create(t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}); err != nil {
			t.Errorf("%s: a ClusterPodDefault with its spec: %v", pd.Name, err)
		}
	}
	if refused < 60 {
		t.Errorf("%d objects are refused by the schema, want 60", refused)
	}
}

func causes(err error) []metav1.StatusCause {
	if status, ok := err.(apierrors.APIStatus); ok && status.Status().Details != nil {
		return status.Status().Details.Causes
	}
	return nil
}

// testOwners applies two parts of one object as two owners, whose elements must both stay.
func testOwners(t *testing.T, config *rest.Config, namespace string) {
	for _, tc := range []struct{ kind, first, second, want string }{
		{
			kind:   v1alpha1.PodDefaultKind,
			first:  `{selector: {}, sidecars: [{name: a, image: a}, {name: b, image: b}], positions: [{name: a, place: First}], hostAliases: [{ip: 10.0.0.1, hostnames: [a]}], ports: [{containerPort: 80}], containerSelector: {names: [a]}}`,
			second: `{positions: [{name: b, place: Last}], hostAliases: [{ip: 10.0.0.2, hostnames: [b]}], ports: [{containerPort: 80, protocol: UDP}], containerSelector: {names: [b]}}`,
			want: `{selector: {}, sidecars: [{name: a, image: a}, {name: b, image: b}], positions: [{name: a, place: First}, {name: b, place: Last}],
				hostAliases: [{ip: 10.0.0.1, hostnames: [a]}, {ip: 10.0.0.2, hostnames: [b]}],
				ports: [{containerPort: 80, protocol: TCP}, {containerPort: 80, protocol: UDP}], containerSelector: {names: [a, b]},
				conflictPolicy: Kubeflow, mode: Enforce, priority: 0, revisionHistoryLimit: 5}`,
		},
		{
			kind:   sallyportv1alpha1.ClusterPodDefaultKind,
			first:  `{selector: {}, env: [{name: a, value: "1"}], volumes: [{name: a, emptyDir: {}}], sidecars: [{name: a, image: a, env: [{name: x}]}], rollout: {steps: [{}]}}`,
			second: `{env: [{name: b, value: "2"}], volumes: [{name: b, emptyDir: {}}], sidecars: [{name: a, env: [{name: z}]}]}`,
			want: `{selector: {}, env: [{name: a, value: "1"}, {name: b, value: "2"}], volumes: [{name: a, emptyDir: {}}, {name: b, emptyDir: {}}],
				sidecars: [{name: a, image: a, env: [{name: x}, {name: z}]}], rollout: {steps: [{percent: 100}], by: Workload, maxFailedPercent: 10},
				conflictPolicy: Kubeflow, mode: Enforce, priority: 0, revisionHistoryLimit: 5}`,
		},
	} {
		client, object := resourceOf(config, namespace, tc.kind)
		object.SetName("owned")
		var stored *unstructured.Unstructured
		for i, spec := range []string{tc.first, tc.second} {
			object.Object["spec"] = inYAML(t, spec)
			var err error
			if stored, err = client.Apply(t.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: []string{"first", "second"}[i]}); err != nil {
				t.Fatalf("%s: %v", tc.kind, err)
			}
		}
		if diff := cmp.Diff(inYAML(t, tc.want), asMap(t, stored.Object["spec"])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.kind, diff)
		}
		if err := client.Delete(t.Context(), object.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
}

func inYAML(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// testNames uses kubectl as people do: short names, the category, columns, field selectors.
func testNames(t *testing.T, config *rest.Config, namespace string) {
	for name, spec := range map[string]string{"audited": `{selector: {}, mode: Audit, priority: 7}`, "plain": `{selector: {}}`} {
		client, object := resourceOf(config, namespace, v1alpha1.PodDefaultKind)
		object.SetName(name)
		object.Object["spec"] = inYAML(t, spec)
		if _, err := client.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Delete(context.Background(), name, metav1.DeleteOptions{}) })
	}
	get := func(args ...string) string {
		var out []byte
		lab.Eventually(t.Context(), t, 30*time.Second, "kubectl get", func(ctx context.Context) (bool, error) {
			var err error
			out, err = kubectl(ctx, config, append([]string{"get", "--namespace", namespace}, args...)...)
			return err == nil, nil
		})
		return string(out)
	}
	if got := get("pd", "--field-selector", "spec.mode=Audit", "-o", "name"); strings.TrimSpace(got) != "poddefault.kubeflow.org/audited" {
		t.Errorf("with the mode Audit: %q", got)
	}
	if got := get("sallyport", "-o", "name"); !strings.Contains(got, "poddefault.kubeflow.org/plain") {
		t.Errorf("the category sallyport has %q", got)
	}
	get("cpd", "--field-selector", "spec.conflictPolicy=Deny,spec.exclusiveGroup=gpu")
	if got := strings.Join(strings.Fields(get("pd", "plain", "-o", "wide")), " "); !strings.Contains(got, "plain 0 Kubeflow Enforce") {
		t.Errorf("columns of an object without settings: %s", got)
	}
	var stored struct {
		Spec map[string]any `json:"spec"`
	}
	if err := json.Unmarshal([]byte(get("pd", "plain", "-o", "json")), &stored); err != nil || stored.Spec["revisionHistoryLimit"] != 5.0 {
		t.Errorf("stored with the spec %v, %v", stored.Spec, err)
	}
}
