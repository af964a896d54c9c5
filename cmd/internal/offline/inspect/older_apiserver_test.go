// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/test/lab"
)

// TestPoliciesOfAnOlderVersionAreListedOnARealAPIServer has an API server of its own, which serves mutating policies as v1beta1 alone.
func TestPoliciesOfAnOlderVersionAreListedOnARealAPIServer(t *testing.T) {
	only := []string{"--feature-gates=MutatingAdmissionPolicy=true", "--runtime-config=admissionregistration.k8s.io/v1beta1=true"}
	if lab.KubernetesMinor(t) >= 36 { // which serves v1 too
		const v1 = "admissionregistration.k8s.io/v1/mutatingadmissionpolic"
		only = []string{"--runtime-config=admissionregistration.k8s.io/v1beta1=true," + v1 + "ies=false," + v1 + "ybindings=false"}
	}
	cp, err := lab.StartControlPlane(t.Context(), t.TempDir(), lab.ControlPlaneOptions{
		Assets: os.Getenv("KUBEBUILDER_ASSETS"), Flags: append(only, "--disable-admission-plugins=ServiceAccount,MutatingAdmissionPolicy"),
	})
	t.Cleanup(cp.Kill)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", cp.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	beta := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1beta1", Resource: "mutatingadmissionpolicies"}
	policy := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": beta.GroupVersion().String(), "kind": "MutatingAdmissionPolicy", "metadata": map[string]any{"name": "beta"},
		"spec": map[string]any{
			"reinvocationPolicy": "Never",
			"matchConstraints":   map[string]any{"resourceRules": []any{map[string]any{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE"}, "resources": []any{"pods"}}}},
			"mutations":          []any{map[string]any{"patchType": "JSONPatch", "jsonPatch": map[string]any{"expression": "[JSONPatch{op: 'remove', path: '/a'}]"}}},
		},
	}}
	client := dynamic.NewForConfigOrDie(config)
	if _, err := client.Resource(beta).Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.New(config, "default")
	if err != nil {
		t.Fatal(err)
	}
	admission, err := AdmissionOfCluster(t.Context(), c, AdmissionKinds())
	if err != nil {
		t.Fatal(err)
	}
	links, err := admission.Links(t.Context(), matcher.Request{})
	if err != nil || len(links) == 0 || links[0].Name != "beta" {
		t.Errorf("%+v, %v", links, err)
	}
}
