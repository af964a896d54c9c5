// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

//go:embed testdata/minimal-pod.yaml
var minimalPodYAML []byte

//go:embed testdata/notebook-pod.yaml
var notebookPodYAML []byte

//go:embed testdata/service.yaml
var serviceYAML []byte

//go:embed testdata/namespace.yaml
var namespaceYAML []byte

// parsePod returns the pod with the labels added.
func parsePod(data []byte, labels map[string]string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict(data, pod); err != nil {
		return nil, err
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	for key, value := range labels {
		pod.Labels[key] = value
	}
	return pod, nil
}
