// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestLargePodsAreAsLargeAsTheySay(t *testing.T) {
	for name, large := range largePods {
		r, err := loadReview(name)
		if err != nil {
			t.Fatal(err)
		}
		if most := max(large.bytes*5/4, 2500); len(r.body) < large.bytes || large.bytes > 0 && len(r.body) > most {
			t.Errorf("%s has %d bytes, want %d to %d", name, len(r.body), large.bytes, most)
		}
		var pod corev1.Pod
		if err := json.Unmarshal(r.object, &pod); err != nil {
			t.Fatal(err)
		}
		if got := len(pod.Spec.Containers[0].Env); got < large.variables {
			t.Errorf("%s has %d variables", name, got)
		}
		volumes := map[string]bool{}
		for _, v := range pod.Spec.Volumes {
			volumes[v.Name] = true
		}
		for _, c := range pod.Spec.Containers {
			names := map[string]bool{}
			for _, e := range c.Env {
				if names[e.Name] {
					t.Errorf("%s: variable %s is there twice", name, e.Name)
				}
				names[e.Name] = true
			}
			for _, m := range c.VolumeMounts {
				if !volumes[m.Name] {
					t.Errorf("%s: no volume %s", name, m.Name)
				}
			}
		}
	}
}
