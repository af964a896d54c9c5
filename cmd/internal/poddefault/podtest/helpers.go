// SPDX-License-Identifier: Apache-2.0

// Package podtest has what tests of several packages need: PodDefaults from YAML, and rollouts.
package podtest

import (
	"bufio"
	"bytes"
	"testing"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// Namespace is that of PodDefaults which name none.
const Namespace = "team-a"

// PodDefaults reads PodDefaults from a stream of YAML documents.
func PodDefaults(t testing.TB, data []byte) []*kubeflowv1alpha1.PodDefault {
	t.Helper()
	var out []*kubeflowv1alpha1.PodDefault
	for _, document := range SplitYAML(t, data) {
		pd := &kubeflowv1alpha1.PodDefault{}
		if err := yaml.UnmarshalStrict(document, pd); err != nil {
			t.Fatalf("parsing a PodDefault: %v\n%s", err, document)
		}
		if pd.Namespace == "" {
			pd.Namespace = Namespace
		}
		if pd.ResourceVersion == "" {
			pd.ResourceVersion = "7"
		}
		out = append(out, pd)
	}
	return out
}

// SplitYAML splits a stream of documents.
func SplitYAML(t testing.TB, data []byte) [][]byte {
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

// ToJSON converts YAML.
func ToJSON(t testing.TB, data []byte) []byte {
	t.Helper()
	out, err := yaml.YAMLToJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
