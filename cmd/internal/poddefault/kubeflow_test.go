// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/test/cases"
)

// TestWhatKubeflowAdmitsIsTheSameHere checks the differences from Kubeflow's webhook in
// docs/poddefault.md: pods that it admits become the same, except for the second table.
func TestWhatKubeflowAdmitsIsTheSameHere(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tb := rapidTB{t, rt}
		pod, pds := drawPod(rt), drawPodDefaults(rt)
		pod.Annotations = drawMap(rt, "other annotations") // no marks: it never takes a pod with them
		for _, pd := range pds {
			// Few fields each, otherwise hardly any pod would be admitted.
			for i, clear := range []func(*kubeflowv1alpha1.PodDefaultSpec){
				func(s *kubeflowv1alpha1.PodDefaultSpec) { s.Env = nil },
				func(s *kubeflowv1alpha1.PodDefaultSpec) { s.Volumes = nil },
				func(s *kubeflowv1alpha1.PodDefaultSpec) { s.VolumeMounts = nil },
				func(s *kubeflowv1alpha1.PodDefaultSpec) { s.Labels, s.Annotations = nil, nil },
				func(s *kubeflowv1alpha1.PodDefaultSpec) { s.Tolerations = nil },
				func(s *kubeflowv1alpha1.PodDefaultSpec) { s.Sidecars = nil },
			} {
				if rapid.IntRange(0, 2).Draw(rt, fmt.Sprint("keeps field ", i)) > 0 {
					clear(&pd.Spec)
				}
			}
			pd.Spec.EnvFrom = drawList(rt, "sources", drawSource, sourceName)
			pd.Spec.ImagePullSecrets = drawList(rt, "pull secrets", drawSecret, secretName)
			if rapid.Bool().Draw(rt, "has a command") {
				pd.Spec.Command = []string{pd.Name}
			}
			if sometimes(rt, "has a twin") && len(pd.Spec.Env) > 0 {
				pd.Spec.Env = append(pd.Spec.Env, pd.Spec.Env[0])
			}
		}
		want, admitted := kubeflow(pod, pds)
		if !admitted {
			return
		}
		raw := encodeJSON(tb, pod)
		resp := handle(tb, raw, pds...)
		if !resp.Allowed {
			rt.Fatalf("denied: %s", resp.Status.Message)
		}
		got := &corev1.Pod{}
		if err := json.Unmarshal(cases.Apply(tb, raw, resp), got); err != nil {
			rt.Fatal(err)
		}
		delete(got.Annotations, meta.DecisionsAnnotation)
		delete(got.Annotations, meta.RevisionsAnnotation)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.SortSlices(func(a, b corev1.Container) bool { return a.Name < b.Name })); diff != "" {
			rt.Fatalf("(-Kubeflow +here):\n%s", diff)
		}
	})
}

func drawSource(t *rapid.T) corev1.EnvFromSource {
	source := corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: drawName.Draw(t, "source")}}
	if rapid.Bool().Draw(t, "optional") {
		source.Optional = new(true)
	}
	return corev1.EnvFromSource{SecretRef: &source}
}

func sourceName(s corev1.EnvFromSource) string { return string(plan.EnvFromKey(plan.Encode(s))) }

func drawSecret(t *rapid.T) corev1.LocalObjectReference {
	return corev1.LocalObjectReference{Name: drawName.Draw(t, "pull secret")}
}

func secretName(s corev1.LocalObjectReference) string { return s.Name }

// kubeflow applies the documented rules of Kubeflow's webhook: existing elements with
// the same key must be equal in every field, and objects are selected once, by the
// original labels. It refuses cases with documented differences: PodDefaults that add
// labels by which others select, or that mount a missing volume.
func kubeflow(before *corev1.Pod, all []*kubeflowv1alpha1.PodDefault) (pod *corev1.Pod, admitted bool) {
	pod = before.DeepCopy()
	var chosen []*kubeflowv1alpha1.PodDefault
	for _, pd := range all {
		if selector, err := metav1.LabelSelectorAsSelector(&pd.Spec.Selector); err == nil && selector.Matches(labels.Set(before.Labels)) {
			chosen = append(chosen, pd)
		}
	}
	ok := true
	brought := map[string]bool{}
	for _, pd := range chosen {
		for _, c := range slices.Concat(pd.Spec.Sidecars, pd.Spec.InitContainers) {
			brought[c.Name] = true
		}
	}
	for _, c := range before.Spec.Containers {
		ok = ok && !brought[c.Name] // it is broken there
	}
	for _, pd := range chosen {
		s := &pd.Spec
		pod.Labels, ok = kubeflowMap(pod.Labels, s.Labels, ok)
		pod.Annotations, ok = kubeflowMap(pod.Annotations, s.Annotations, ok)
		pod.Spec.Volumes = kubeflowList(pod.Spec.Volumes, s.Volumes, volumeName, &ok)
		for _, taint := range s.Tolerations {
			pod.Spec.Tolerations = kubeflowList(pod.Spec.Tolerations, []corev1.Toleration{taint}, func(t corev1.Toleration) string { return t.Key }, &ok)
		}
		pod.Spec.ImagePullSecrets = kubeflowList(pod.Spec.ImagePullSecrets, s.ImagePullSecrets, secretName, &ok)
		for i := range pod.Spec.Containers {
			c := &pod.Spec.Containers[i]
			c.Env = kubeflowList(c.Env, s.Env, envName, &ok)
			for _, mount := range s.VolumeMounts { // by volume and by path
				kubeflowList(c.VolumeMounts, []corev1.VolumeMount{mount}, mountPath, &ok)
				c.VolumeMounts = kubeflowList(c.VolumeMounts, []corev1.VolumeMount{mount}, func(m corev1.VolumeMount) string { return m.Name }, &ok)
			}
			for _, source := range s.EnvFrom { // it is there twice; here once
				if !slices.ContainsFunc(c.EnvFrom, func(other corev1.EnvFromSource) bool { return reflect.DeepEqual(other, source) }) {
					c.EnvFrom = append(c.EnvFrom, source)
				}
			}
			if c.Command == nil {
				c.Command = s.Command
			}
			if c.Args == nil {
				c.Args = s.Args
			}
		}
		if s.ServiceAccountName != "" {
			pod.Spec.ServiceAccountName = s.ServiceAccountName
		}
	}
	containerName := func(c corev1.Container) string { return c.Name }
	for _, pd := range chosen { // these get nothing of the others
		pod.Spec.InitContainers = kubeflowList(pod.Spec.InitContainers, pd.Spec.InitContainers, containerName, &ok)
		pod.Spec.Containers = kubeflowList(pod.Spec.Containers, pd.Spec.Sidecars, containerName, &ok)
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		pod.Annotations[meta.Mark(pd.Name)] = pd.ResourceVersion
	}
	for _, pd := range all {
		selector, _ := metav1.LabelSelectorAsSelector(&pd.Spec.Selector)
		ok = ok && (slices.Contains(chosen, pd) || !selector.Matches(labels.Set(pod.Labels)))
	}
	for _, pd := range chosen {
		mounts := slices.Clone(pd.Spec.VolumeMounts)
		for _, c := range slices.Concat(pd.Spec.Sidecars, pd.Spec.InitContainers) {
			mounts = append(mounts, c.VolumeMounts...)
		}
		for _, mount := range mounts {
			ok = ok && slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		}
	}
	return pod, ok
}

func kubeflowMap(there, wanted map[string]string, ok bool) (map[string]string, bool) {
	out := map[string]string{}
	for key, value := range there {
		out[key] = value
	}
	for key, value := range wanted {
		if have, set := out[key]; set && have != value {
			ok = false
		}
		out[key] = value
	}
	return out, ok
}

func kubeflowList[T any](there, wanted []T, key func(T) string, ok *bool) []T {
	out := slices.Clone(there)
	for _, w := range wanted {
		i := slices.IndexFunc(out, func(e T) bool { return key(e) == key(w) })
		if i < 0 {
			out = append(out, w)
		} else if !reflect.DeepEqual(out[i], w) {
			*ok = false
		}
	}
	return out
}
