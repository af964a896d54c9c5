// SPDX-License-Identifier: Apache-2.0

package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A recording is a review as kube-apiserver sent it when the object was created,
// byte for byte, so not formatted for people: testdata/<name>.json.
type recording struct {
	name    string
	object  []byte                                  // as its creator sends it, YAML
	change  func(object *unstructured.Unstructured) // before it is sent; nil for none
	creator creator
}

// A creator is whom the API server saw.
type creator struct {
	user    string
	groups  []string
	manager string // of the fields
}

var (
	person = creator{
		user:    "user@example.com",
		groups:  []string{"system:masters", "system:authenticated"},
		manager: "kubectl-create",
	}
	statefulSetController = creator{
		user:    "system:serviceaccount:kube-system:statefulset-controller",
		groups:  []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"},
		manager: "kube-controller-manager",
	}
	// selecting is the label of the first PodDefault of testdata/poddefaults.yaml.
	selecting = map[string]string{"add-gcp-secret": "true"}
)

var recordings = []recording{
	{"minimal", minimalPodYAML, nil, person},
	{"minimal-selecting", minimalPodYAML, selects, person},
	{"notebook", notebookPodYAML, nil, statefulSetController},
	{"notebook-selecting", notebookPodYAML, selects, statefulSetController},
	{"notebook-always", notebookPodYAML, func(pod *unstructured.Unstructured) { alwaysPull(pod.Object) }, statefulSetController},
	{"notebook-datasets", notebookPodYAML, mountsDatasets, statefulSetController},
	{"service", serviceYAML, nil, person},
	{"namespace", namespaceYAML, nil, person},
	{"namespace-stamped", namespaceYAML, stamped, person},
}

// stamped is another namespace than the recorded one, of which no controller cleans up
// what is left.
func stamped(namespace *unstructured.Unstructured) {
	namespace.SetName("team-sound")
	stamp(namespace.Object)
}

// selects adds the labels by which a pod selects a PodDefault.
func selects(pod *unstructured.Unstructured) {
	all := pod.GetLabels()
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, selecting)
	pod.SetLabels(all)
}

//go:embed testdata/*.json
var recordedReviews embed.FS

// A review is a recorded one, and what is needed of it to judge the answers.
type review struct {
	name   string
	body   []byte
	uid    string
	object []byte
}

func loadReview(name string) (review, error) {
	if isConversion(name) {
		return loadConversion(name)
	}
	if name == volumeReviewName {
		return loadVolume()
	}
	if of, ok := deployments[name]; ok {
		return loadDeployment(name, of)
	}
	if _, large := largePods[name]; large {
		return loadLarge(name)
	}
	body, err := recordedReviews.ReadFile("testdata/" + name + ".json")
	if err != nil {
		return review{}, fmt.Errorf("no recorded review (go run ./cmd/test/bench -capture makes them): %w", err)
	}
	var envelope admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &envelope); err != nil {
		return review{}, fmt.Errorf("testdata/%s.json: %w", name, err)
	}
	if envelope.Request == nil || len(envelope.Request.Object.Raw) == 0 {
		return review{}, fmt.Errorf("testdata/%s.json is not a review of an object", name)
	}
	return review{name, body, string(envelope.Request.UID), envelope.Request.Object.Raw}, nil
}
