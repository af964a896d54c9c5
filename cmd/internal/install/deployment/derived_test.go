// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metadatafake "k8s.io/client-go/metadata/fake"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/backstop"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/reports"
	"github.com/sallyport-io/sallyport/internal/registration"
)

// RemoveDerived removes indexes and reports, and keeps other clients' objects.
func TestDerivedObjectsAreRemoved(t *testing.T) {
	object := func(of schema.GroupVersionKind, namespace, name string, labels map[string]string) *metav1.PartialObjectMetadata {
		out := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
		out.SetGroupVersionKind(of)
		return out
	}
	ours := map[string]string{registration.ManagedByLabel: registration.ManagedByValue}
	template := corev1.SchemeGroupVersion.WithKind("PodTemplate")
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	client := metadatafake.NewSimpleMetadataClient(scheme,
		object(template, "team-a", backstop.TemplateName, ours), object(template, "team-b", backstop.TemplateName, ours),
		object(template, "team-c", backstop.TemplateName, nil))
	for namespace, labels := range map[string]map[string]string{"team-a": ours, "team-b": nil} {
		report := object(reports.Resource.GroupVersion().WithKind("Report"), namespace, reports.ReportName, labels)
		if err := client.Tracker().Create(reports.Resource, report, namespace); err != nil {
			t.Fatal(err)
		}
	}
	removed, err := removeDerived(t.Context(), client, false)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range removed {
		got = append(got, r.Object)
	}
	if want := []string{"podtemplates of 2 namespaces", "reports.openreports.io of 1 namespaces"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	left, err := client.Resource(corev1.SchemeGroupVersion.WithResource(backstop.TemplateResource)).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) != 1 || left.Items[0].Namespace != "team-c" {
		t.Errorf("left: %v (%v)", left, err)
	}
}
