// SPDX-License-Identifier: Apache-2.0

package main

import (
	"embed"
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
)

// A recording is a review as kube-apiserver sent it when the pod was created,
// byte for byte, so not formatted for people: testdata/<name>.json.
type recording struct {
	name    string
	pod     []byte            // as its creator sends it, YAML
	labels  map[string]string // added to it
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
	{"minimal-selecting", minimalPodYAML, selecting, person},
	{"notebook", notebookPodYAML, nil, statefulSetController},
	{"notebook-selecting", notebookPodYAML, selecting, statefulSetController},
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
	body, err := recordedReviews.ReadFile("testdata/" + name + ".json")
	if err != nil {
		return review{}, fmt.Errorf("no recorded review (go run ./test/bench -capture makes them): %w", err)
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
