// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podtest"
)

// What a pod says of itself does not include it in a step: it carries the new revision in
// each of these cases.
func TestAStepIncludesPodsByWhatTheyAre(t *testing.T) {
	in := map[string]string{"canary": "true"}
	for _, tc := range []struct {
		what      string
		namespace map[string]string
		change    func(*sallyportv1alpha1.ClusterPodDefaultSpec)
		pod       metav1.ObjectMeta
		want      bool
	}{
		{what: "a pod of the canary", namespace: in, want: true},
		{what: "a tenant's outside of it"},
		{what: "an excluded pod of the canary", namespace: in, pod: metav1.ObjectMeta{Annotations: map[string]string{meta.ExcludeAnnotation: "true"}}, want: true},
		{what: "an excluded pod that may be", namespace: in, change: func(s *sallyportv1alpha1.ClusterPodDefaultSpec) { s.AllowExclude = true },
			pod: metav1.ObjectMeta{Annotations: map[string]string{meta.ExcludeAnnotation: "true"}}},
		{what: "a mirror pod", namespace: in, pod: metav1.ObjectMeta{Annotations: map[string]string{meta.MirrorAnnotation: "x"}}},
		{what: "a namespace that the object does not select", namespace: in, change: func(s *sallyportv1alpha1.ClusterPodDefaultSpec) {
			s.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"other": "true"}}
		}},
		{what: "none of the workloads", namespace: in, change: func(s *sallyportv1alpha1.ClusterPodDefaultSpec) {
			s.Rollout = &kubeflowv1alpha1.Rollout{Steps: []kubeflowv1alpha1.RolloutStep{{Percent: new(int32(0))}}}
		}},
		{what: "a share of pods, by a name that was generated", change: func(s *sallyportv1alpha1.ClusterPodDefaultSpec) {
			s.Rollout = &kubeflowv1alpha1.Rollout{By: kubeflowv1alpha1.RolloutByPod, Steps: []kubeflowv1alpha1.RolloutStep{{Percent: new(int32(1))}}}
		}, pod: metav1.ObjectMeta{GenerateName: "p-"}, want: true},
		{what: "none of the pods, by a name that was generated", change: func(s *sallyportv1alpha1.ClusterPodDefaultSpec) {
			s.Rollout = &kubeflowv1alpha1.Rollout{By: kubeflowv1alpha1.RolloutByPod, Steps: []kubeflowv1alpha1.RolloutStep{{Percent: new(int32(0))}}}
		}, pod: metav1.ObjectMeta{GenerateName: "p-"}},
	} {
		cpd, _, current := canary(t, tc.change)
		pod := tc.pod.DeepCopy()
		pod.Namespace, pod.Name = podtest.Namespace, "p"
		metav1.SetMetaDataAnnotation(pod, meta.ClusterMark("staged"), "7")
		metav1.SetMetaDataAnnotation(pod, meta.RevisionsAnnotation, "cluster/staged@"+current)
		got, err := match.Includes(t.Context(), inNamespace(cpd, tc.namespace), cpd, pod)
		if err != nil || got != tc.want {
			t.Errorf("%s: %v, %v", tc.what, got, err)
		}
	}
}
