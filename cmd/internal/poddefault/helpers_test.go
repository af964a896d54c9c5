// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/admission"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podtest"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
)

// createRequest returns the API server's request for a new pod.
func createRequest(raw []byte) *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{
		UID:       "c8a5c4b2-0000-4000-8000-000000000001",
		Kind:      metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
		Resource:  podResource,
		Namespace: podtest.Namespace,
		Operation: admissionv1.Create,
		Object:    runtime.RawExtension{Raw: raw},
	}
}

func indexOf(pds ...*kubeflowv1alpha1.PodDefault) *source.Index {
	index := source.NewIndex()
	for _, pd := range pds {
		index.Set(plan.Compile(pd))
	}
	return index
}

// parseIndex reads PodDefaults, ClusterPodDefaults, revisions, Namespaces and Secrets from a stream
// of YAML documents, in the given or reverse order.
func parseIndex(t testing.TB, data []byte, backwards bool) *source.Index {
	t.Helper()
	index := source.NewIndex()
	documents := podtest.SplitYAML(t, data)
	if backwards {
		slices.Reverse(documents)
	}
	recorded := &revision.Set{}
	for _, document := range documents {
		one := &revision.Object{}
		if err := yaml.Unmarshal(document, one); err == nil && strings.HasSuffix(one.Kind, "PodDefaultRevision") {
			if one.Kind == sallyportv1alpha1.PodDefaultRevisionKind {
				one.Namespace = cmp.Or(one.Namespace, podtest.Namespace)
			}
			proven := revision.Prove(one)
			if proven.Problem != nil {
				t.Fatalf("%s: %v\n%s", proven, proven.Problem, document)
			}
			recorded.Add(proven)
		}
	}
	for _, document := range documents {
		md := metav1.PartialObjectMetadata{}
		if err := yaml.Unmarshal(document, &md); err != nil {
			t.Fatal(err)
		}
		switch md.Kind {
		case sallyportv1alpha1.PodDefaultRevisionKind, sallyportv1alpha1.ClusterPodDefaultRevisionKind:
		case "Namespace":
			index.SetNamespace(md.Name, md.Labels)
		case "Secret":
			index.SetSecret(cmp.Or(md.Namespace, podtest.Namespace), md.Name, md.Labels)
		case "ClusterPodDefault":
			cpd := &sallyportv1alpha1.ClusterPodDefault{}
			if err := yaml.UnmarshalStrict(document, cpd); err != nil {
				t.Fatalf("parsing a ClusterPodDefault: %v\n%s", err, document)
			}
			cpd.ResourceVersion = "8"
			index.Set(plan.CompileCluster(cpd).With(recorded))
		default:
			index.Set(plan.Compile(podtest.PodDefaults(t, document)[0]).With(recorded))
		}
	}
	return index
}

// handle runs the webhook's handler over the PodDefaults.
func handle(t testing.TB, raw []byte, pds ...*kubeflowv1alpha1.PodDefault) *admission.Response {
	t.Helper()
	return handleFrom(t, raw, indexOf(pds...))
}

// handleFrom runs the handler of the webhook that is responsible for the pod.
func handleFrom(t testing.TB, raw []byte, index *source.Index) *admission.Response {
	t.Helper()
	define := New
	if md, ok := meta.ReadMetadata(raw); ok && md.Annotations.Get(meta.ExcludeAnnotation) == "true" {
		define = NewExcluded
	}
	webhook, err := define(index, DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	resp, err := webhook.Handler.Handle(admission.WithOrigins(t.Context()), createRequest(raw))
	if err != nil {
		t.Fatalf("handling the pod: %v", err)
	}
	return resp
}
