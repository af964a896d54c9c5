// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/sallyport-io/sallyport/internal/kube/selectors"
)

// newPod returns a pod with labels that a selector selects. It passes the strictest Pod
// Security Standard and most quotas, has no token, and would never be scheduled. Its name
// cannot be guessed, so nobody can take it.
func newPod(namespace string, selector *metav1.LabelSelector) (*corev1.Pod, error) {
	set, err := selected(selector)
	if err != nil {
		return nil, err
	}
	small := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("1Mi")}
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sallyport-doctor-" + rand.String(10), Labels: set},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(false),
			RestartPolicy:                corev1.RestartPolicyNever,
			SchedulingGates:              []corev1.PodSchedulingGate{{Name: "sallyport.io/doctor"}},
			SecurityContext:              &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(65532)), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: "doctor", Image: "registry.k8s.io/pause:3.10",
				Resources: corev1.ResourceRequirements{Requests: small, Limits: small},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}, nil
}

// selected returns labels that a selector selects.
func selected(selector *metav1.LabelSelector) (map[string]string, error) {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, errors.New("its selector does not parse")
	}
	allowed := map[string][]string{} // values, by key
	var excluded []metav1.LabelSelectorRequirement
	set := map[string]string{}
	for _, term := range selectors.Terms(selector) {
		switch term.Operator {
		case metav1.LabelSelectorOpIn:
			values := slices.Clone(term.Values)
			if before, there := allowed[term.Key]; there {
				values = slices.DeleteFunc(values, func(v string) bool { return !slices.Contains(before, v) })
			}
			allowed[term.Key] = values
		case metav1.LabelSelectorOpExists:
			set[term.Key] = ""
		default:
			excluded = append(excluded, term)
		}
	}
	unwanted := func(key, value string) bool {
		return slices.ContainsFunc(excluded, func(t metav1.LabelSelectorRequirement) bool {
			return t.Key == key && t.Operator == metav1.LabelSelectorOpNotIn && slices.Contains(t.Values, value)
		})
	}
	for key, values := range allowed {
		values = slices.DeleteFunc(values, func(v string) bool { return unwanted(key, v) })
		if len(values) > 0 {
			slices.Sort(values)
			set[key] = values[0]
		}
	}
	for key, value := range set {
		for i := 0; unwanted(key, value); i++ {
			value = fmt.Sprint("any-", i)
			set[key] = value
		}
	}
	if !parsed.Matches(labels.Set(set)) {
		return nil, errors.New("its selector selects no pod")
	}
	return set, nil
}
