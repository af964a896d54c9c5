// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"cmp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

const (
	// enforceMountables is the annotation that limits a ServiceAccount's pods to its Secrets.
	enforceMountables = "kubernetes.io/enforce-mountable-secrets"
	defaultAccount    = "default"
)

// account is the plugin ServiceAccount, for other pods than mirror pods.
func (o *Objects) account(a *Answer, p Pod) {
	const pointer = "/spec/serviceAccountName"
	var reported []string
	p.both(func(pod *corev1.Pod) {
		name := cmp.Or(pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount, defaultAccount)
		account := o.accounts[[2]string{p.Namespace, name}]
		if slices.Contains(reported, name) {
			return
		}
		reported = append(reported, name)
		switch {
		case account == nil && name == defaultAccount:
			a.Open.add(openAccount, p.Namespace)
		case account == nil:
			a.unknown("whether the ServiceAccount %s exists in the namespace %s%s: it is not in the files", name, p.Namespace, p.setBy(pointer))
		default:
			if limited, _ := strconv.ParseBool(account.Annotations[enforceMountables]); limited {
				a.unknown("whether the pod uses only the Secrets that the ServiceAccount %s%s lists: its annotation %s demands it", name, p.setBy(pointer), enforceMountables)
			}
		}
	})
}

// mirrorPod checks what the API server demands of mirror pods, and reports whether the pod is one.
func mirrorPod(a *Answer, pod *corev1.Pod) bool {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; !mirror {
		return false
	}
	if pod.Spec.NodeName == "" {
		a.deny("validation", "spec.nodeName is required: the annotation %s makes it a mirror pod", corev1.MirrorPodAnnotationKey)
	}
	if cmp.Or(pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount) != "" {
		a.deny("ServiceAccount", "a mirror pod must not name a ServiceAccount: omit spec.serviceAccountName")
	}
	return true
}
