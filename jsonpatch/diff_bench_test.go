// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// BenchmarkDiff compares Diff with DiffRaw. `make bench` compares a whole call with controller-runtime's.
func BenchmarkDiff(b *testing.B) {
	raw := notebookPod()
	var before corev1.Pod
	if err := json.Unmarshal(raw, &before); err != nil {
		b.Fatal(err)
	}
	for _, change := range []struct {
		name string
		make func(pod *corev1.Pod)
	}{
		{"an env var, a volume and a mount for each container", addToEachContainer},
		{"nothing", func(*corev1.Pod) {}},
		{"1000 env vars", func(pod *corev1.Pod) { addEnv(pod, 1000) }},
		{"10000 env vars", func(pod *corev1.Pod) { addEnv(pod, 10_000) }},
	} {
		after := before.DeepCopy()
		change.make(after)
		b.Run(change.name+"/Diff", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Diff(&before, after); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(change.name+"/DiffRaw", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := DiffRaw(raw, &before, after); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func addToEachContainer(pod *corev1.Pod) {
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "credentials", VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: "gcp-credentials"},
	}})
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		c.Env = append(c.Env, corev1.EnvVar{Name: "GOOGLE_APPLICATION_CREDENTIALS", Value: "/secret/gcp/key.json"})
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "credentials", MountPath: "/secret/gcp", ReadOnly: true})
	}
}

func addEnv(pod *corev1.Pod, n int) {
	c := &pod.Spec.Containers[0]
	for i := range n {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("ADDED_%d", i), Value: "some value of the usual length"})
	}
}
