// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestWhatAPodLacksIsNamedWithoutValues(t *testing.T) {
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "a"}}}}
		change(p)
		return p
	}
	sent := pod(func(*corev1.Pod) {})
	foreseen := pod(func(p *corev1.Pod) {
		p.Labels = map[string]string{"added": "secret"}
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TOKEN", Value: "secret"}, {Name: "OTHER", Value: "1"}}
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/a"}, {Name: "v", MountPath: "/b"}}
		p.Spec.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}
	})
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		want   []string
	}{
		"nothing, though the API server and other webhooks add and replace": {func(p *corev1.Pod) {
			p.Spec.Containers = append([]corev1.Container{{Name: "istio-proxy"}}, p.Spec.Containers...)
			p.Spec.Containers[1].Image, p.Spec.DNSPolicy = "mirror/a", corev1.DNSClusterFirst
			p.Spec.Tolerations = append([]corev1.Toleration{{Key: "other"}}, p.Spec.Tolerations...)
		}, nil},
		"a variable":   {func(p *corev1.Pod) { p.Spec.Containers[0].Env = p.Spec.Containers[0].Env[1:] }, []string{"spec.containers[main].env[TOKEN]"}},
		"its value":    {func(p *corev1.Pod) { p.Spec.Containers[0].Env[0].Value = "x" }, []string{"spec.containers[main].env[TOKEN].value"}},
		"a mount":      {func(p *corev1.Pod) { p.Spec.Containers[0].VolumeMounts = p.Spec.Containers[0].VolumeMounts[:1] }, []string{"spec.containers[main].volumeMounts[/b]"}},
		"a label":      {func(p *corev1.Pod) { p.Labels = nil }, []string{"metadata.labels"}},
		"a toleration": {func(p *corev1.Pod) { p.Spec.Tolerations = nil }, []string{"spec.tolerations[0]"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := foreseen.DeepCopy()
			tc.change(got)
			before, _ := json.Marshal(sent)
			after, _ := json.Marshal(foreseen)
			places, err := Lacking(before, after, got)
			if diff := cmp.Diff(tc.want, places, cmp.Transformer("none", func(s []string) []string { return append([]string{}, s...) })); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}
