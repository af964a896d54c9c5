// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"bufio"
	"bytes"
	"cmp"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/admission"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
)

const testNamespace = "team-a"

// createRequest returns the API server's request for a new pod.
func createRequest(raw []byte) *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{
		UID:       "c8a5c4b2-0000-4000-8000-000000000001",
		Kind:      metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
		Resource:  podResource,
		Namespace: testNamespace,
		Operation: admissionv1.Create,
		Object:    runtime.RawExtension{Raw: raw},
	}
}

// parsePodDefaults reads PodDefaults from a stream of YAML documents.
func parsePodDefaults(t testing.TB, data []byte) []*kubeflowv1alpha1.PodDefault {
	t.Helper()
	var out []*kubeflowv1alpha1.PodDefault
	for _, document := range splitYAML(t, data) {
		pd := &kubeflowv1alpha1.PodDefault{}
		if err := yaml.UnmarshalStrict(document, pd); err != nil {
			t.Fatalf("parsing a PodDefault: %v\n%s", err, document)
		}
		if pd.Namespace == "" {
			pd.Namespace = testNamespace
		}
		if pd.ResourceVersion == "" {
			pd.ResourceVersion = "7"
		}
		out = append(out, pd)
	}
	return out
}

func splitYAML(t testing.TB, data []byte) [][]byte {
	t.Helper()
	var documents [][]byte
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := reader.Read()
		if err != nil {
			return documents
		}
		if len(bytes.TrimSpace(document)) > 0 {
			documents = append(documents, document)
		}
	}
}

func indexOf(pds ...*kubeflowv1alpha1.PodDefault) *Index {
	index := NewIndex()
	for _, pd := range pds {
		index.Set(Compile(pd))
	}
	return index
}

// parseIndex reads PodDefaults, ClusterPodDefaults, revisions, Namespaces and Secrets from a stream
// of YAML documents, in the given or reverse order.
func parseIndex(t testing.TB, data []byte, backwards bool) *Index {
	t.Helper()
	index := NewIndex()
	documents := splitYAML(t, data)
	if backwards {
		slices.Reverse(documents)
	}
	recorded := &revision.Set{}
	for _, document := range documents {
		one := &revision.Object{}
		if err := yaml.Unmarshal(document, one); err == nil && strings.HasSuffix(one.Kind, "PodDefaultRevision") {
			if one.Kind == sallyportv1alpha1.PodDefaultRevisionKind {
				one.Namespace = cmp.Or(one.Namespace, testNamespace)
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
			index.SetSecret(cmp.Or(md.Namespace, testNamespace), md.Name, md.Labels)
		case "ClusterPodDefault":
			cpd := &sallyportv1alpha1.ClusterPodDefault{}
			if err := yaml.UnmarshalStrict(document, cpd); err != nil {
				t.Fatalf("parsing a ClusterPodDefault: %v\n%s", err, document)
			}
			cpd.ResourceVersion = "8"
			index.Set(CompileCluster(cpd).With(recorded))
		default:
			index.Set(Compile(parsePodDefaults(t, document)[0]).With(recorded))
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
func handleFrom(t testing.TB, raw []byte, index *Index) *admission.Response {
	t.Helper()
	define := New
	if md, ok := readMetadata(raw); ok && md.annotations.Get(meta.ExcludeAnnotation) == "true" {
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

func toJSON(t testing.TB, data []byte) []byte {
	t.Helper()
	out, err := yaml.YAMLToJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
