// SPDX-License-Identifier: Apache-2.0

package author

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// controlPlaneKeys are labels and taint keys of control plane nodes (k8s.io/api/core/v1
// and kubeadm).
var controlPlaneKeys = []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master", "node-role.kubernetes.io/etcd"}

// controlPlane reports fields that bring other people's pods to control plane nodes.
// Only authors who may create pods in every namespace may select those nodes.
// Tolerating their taints is only a warning: it selects no node, and existing
// PodDefaults do it.
func controlPlane(spec *kubeflowv1alpha1.PodDefaultSpec, path *field.Path, cluster bool) (errs field.ErrorList, warnings []string) {
	for i, toleration := range spec.Tolerations {
		at := path.Child("tolerations").Index(i).String()
		if toleration.Key == "" {
			warnings = append(warnings, at+": it tolerates every taint, also of nodes that run the cluster or are about to go: is that meant?")
		} else if slices.Contains(controlPlaneKeys, toleration.Key) {
			warnings = append(warnings, at+": it tolerates the taint of nodes that run the cluster: is that meant?")
		}
	}
	toleratesThem := slices.ContainsFunc(spec.Tolerations, func(t corev1.Toleration) bool {
		return t.Key == "" || slices.Contains(controlPlaneKeys, t.Key)
	})
	// Names do not identify control plane nodes. Their taints keep pods away unless the
	// pods also tolerate them.
	byName := func(at *field.Path) {
		if toleratesThem && !cluster {
			errs = append(errs, field.Forbidden(at, "it chooses nodes by name and tolerates the taints of those that run the cluster, "+
				"which is not for a namespace to say: remove one of them, or have it said by a ClusterPodDefault"))
		} else {
			warnings = append(warnings, at.String()+": it chooses single nodes by name: is that meant?")
		}
	}
	choose := func(at *field.Path, key string) {
		if cluster {
			warnings = append(warnings, at.String()+": it chooses nodes that run the cluster: is that meant?")
		} else {
			errs = append(errs, field.Forbidden(at, key+" chooses nodes that run the cluster, which is not for a namespace to say: remove it, or have it said by a ClusterPodDefault"))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
		if slices.Contains(controlPlaneKeys, key) {
			choose(path.Child("nodeSelector").Key(key), key)
		}
		if key == corev1.LabelHostname {
			byName(path.Child("nodeSelector").Key(key))
		}
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return errs, warnings
	}
	look := func(at *field.Path, term *corev1.NodeSelectorTerm) {
		for i, r := range term.MatchExpressions {
			if slices.Contains(controlPlaneKeys, r.Key) && r.Operator != corev1.NodeSelectorOpDoesNotExist && r.Operator != corev1.NodeSelectorOpNotIn {
				choose(at.Child("matchExpressions").Index(i), r.Key)
			}
			if r.Key == corev1.LabelHostname && r.Operator == corev1.NodeSelectorOpIn {
				byName(at.Child("matchExpressions").Index(i))
			}
		}
		for i, r := range term.MatchFields {
			if r.Operator == corev1.NodeSelectorOpIn {
				byName(at.Child("matchFields").Index(i))
			}
		}
	}
	at := path.Child("affinity", "nodeAffinity")
	if required := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		for i := range required.NodeSelectorTerms {
			look(at.Child("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms").Index(i), &required.NodeSelectorTerms[i])
		}
	}
	for i := range spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
		look(at.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i).Child("preference"),
			&spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution[i].Preference)
	}
	return errs, warnings
}
