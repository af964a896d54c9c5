// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Reviews of Deployments that are made of the review of a pod.
const (
	deploymentCreated = "deployment that is created"
	deploymentScaled  = "deployment that is scaled"
)

// deployments are their operations.
var deployments = map[string]admissionv1.Operation{deploymentCreated: admissionv1.Create, deploymentScaled: admissionv1.Update}

// loadDeployment returns the review of a Deployment of the notebook pod that a PodDefault selects.
func loadDeployment(name string, operation admissionv1.Operation) (review, error) {
	of, err := loadReview("notebook-selecting")
	if err != nil {
		return review{}, err
	}
	var envelope admissionv1.AdmissionReview
	var pod map[string]any
	if err := json.Unmarshal(of.body, &envelope); err != nil {
		return review{}, err
	}
	if err := json.Unmarshal(of.object, &pod); err != nil {
		return review{}, err
	}
	labels := child(pod, "metadata")["labels"]
	object := func(replicas int) ([]byte, error) {
		return json.Marshal(map[string]any{
			"kind": "Deployment", "apiVersion": "apps/v1",
			"metadata": map[string]any{"name": "segmentation", "namespace": namespace, "managedFields": child(pod, "metadata")["managedFields"]},
			"spec": map[string]any{
				"replicas": replicas, "selector": map[string]any{"matchLabels": labels},
				"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": pod["spec"]},
			},
		})
	}
	now, err := object(2)
	if err != nil {
		return review{}, err
	}
	req := envelope.Request
	req.Kind = metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	req.Resource = metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	req.RequestKind, req.RequestResource = &req.Kind, &req.Resource
	req.Name, req.Operation, req.Object = "segmentation", operation, runtime.RawExtension{Raw: now}
	if operation == admissionv1.Update {
		if req.OldObject.Raw, err = object(1); err != nil {
			return review{}, err
		}
	}
	body, err := json.Marshal(&envelope)
	if err != nil {
		return review{}, fmt.Errorf("%s: %w", name, err)
	}
	return review{name, body, of.uid, now}, nil
}
