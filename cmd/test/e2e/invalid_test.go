// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
)

// testInvalid writes the objects of config/crd/testdata/invalid.yaml, of which the tests of config/crd
// have those that the API server refuses without a server.
func testInvalid(t *testing.T, e *env, namespace string) {
	var objects []struct {
		Name, Kind, Path string
		Server           bool
		Spec             map[string]any
	}
	data, err := os.ReadFile("../../../config/crd/testdata/invalid.yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(data, &objects)
	}
	if err != nil {
		t.Fatal(err)
	}
	byServer := 0
	for _, invalid := range objects {
		object := &unstructured.Unstructured{Object: map[string]any{"spec": invalid.Spec}}
		object.SetName("invalid")
		if object.SetGroupVersionKind(kubeflowv1alpha1.Kind(kubeflowv1alpha1.PodDefaultKind)); invalid.Kind != "" {
			object.SetGroupVersionKind(sallyportv1alpha1.Kind(invalid.Kind))
		} else {
			object.SetNamespace(namespace)
		}
		if invalid.Spec["selector"] == nil {
			invalid.Spec["selector"] = map[string]any{}
		}
		err := e.client.Create(t.Context(), object, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
		if !apierrors.IsInvalid(err) || !slices.ContainsFunc(status(t, err).Details.Causes, func(c metav1.StatusCause) bool { return c.Field == invalid.Path }) {
			t.Errorf("%s: got %v, want a refusal of %s", invalid.Name, err, invalid.Path)
		}
		if invalid.Server {
			byServer++
		}
	}
	if byServer == 0 || len(objects) < 60 {
		t.Errorf("%d objects, %d for the server", len(objects), byServer)
	}
}
