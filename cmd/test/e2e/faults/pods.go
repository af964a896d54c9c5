// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// typicalPodDefaults is how many PodDefaults the namespace of a row has, unless the row
// is about their number.
const typicalPodDefaults = 8

// selectPrefix and the name of a PodDefault make the label that selects it.
const selectPrefix = "inject-"

func podDefaultName(n int) string { return fmt.Sprintf("d%05d", n) }

func envName(podDefault string) string { return "FROM_" + strings.ToUpper(podDefault) }

// newPod is the n-th pod of a stream in a namespace of so many PodDefaults: it selects
// one to three of them. All combinations come up.
func newPod(name string, n, podDefaults int) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/app:1"}}},
	}
	for _, i := range []int{n, n / podDefaults, n / podDefaults / podDefaults} {
		pod.Labels[selectPrefix+podDefaultName(i%podDefaults)] = "true"
	}
	return pod
}

// checkInjected compares what a pod carries with what its labels select: no PodDefault
// may be missing, and none be there that was not selected.
func checkInjected(pod *corev1.Pod) error {
	var want, marks, env []string
	for key := range pod.Labels {
		if name, ok := strings.CutPrefix(key, selectPrefix); ok {
			want = append(want, name)
		}
	}
	for key := range pod.Annotations {
		if name, ok := strings.CutPrefix(key, meta.MarkPrefix); ok {
			marks = append(marks, name)
		}
	}
	for _, variable := range pod.Spec.Containers[0].Env {
		env = append(env, variable.Name)
	}
	slices.Sort(want)
	slices.Sort(marks)
	slices.Sort(env)
	wantEnv := make([]string, len(want))
	for i, name := range want {
		wantEnv[i] = envName(name)
	}
	if !slices.Equal(want, marks) || !slices.Equal(wantEnv, env) {
		return fmt.Errorf("pod %s selects %v; it is marked with %v and has env %v", pod.Name, want, marks, env)
	}
	return nil
}

// createPodDefaults makes the first n PodDefaults of the row's namespace.
func (c *cluster) createPodDefaults(ctx context.Context, n int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range n {
		group.Go(func() error {
			name := podDefaultName(i)
			pd := &v1alpha1.PodDefault{
				ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name},
				Spec: v1alpha1.PodDefaultSpec{
					Selector: metav1.LabelSelector{MatchLabels: map[string]string{selectPrefix + name: "true"}},
					Env:      []corev1.EnvVar{{Name: envName(name), Value: "1"}},
				},
			}
			if i%4 == 1 { // as credentials come
				pd.Spec.Volumes = []corev1.Volume{{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}}}
				pd.Spec.VolumeMounts = []corev1.VolumeMount{{Name: name, MountPath: "/secrets/" + name}}
			}
			if err := c.objects.Create(ctx, pd); client.IgnoreAlreadyExists(err) != nil {
				return fmt.Errorf("creating PodDefault %s: %w", name, err)
			}
			return nil
		})
	}
	return group.Wait()
}
