// SPDX-License-Identifier: Apache-2.0

// Package podsecurity evaluates kube-apiserver's plugin PodSecurity with its default configuration: only the
// labels of namespaces decide, and nobody is exempt.
package podsecurity

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podsecurity "k8s.io/pod-security-admission/admission"
	podsecurityconfig "k8s.io/pod-security-admission/admission/api"
	podsecurityapi "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/metrics"
	"k8s.io/pod-security-admission/policy"
)

// New returns the plugin.
func New(namespaces podsecurity.NamespaceGetter, pods podsecurity.PodLister) (*podsecurity.Admission, error) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return nil, err
	}
	privileged, latest := string(podsecurityapi.LevelPrivileged), podsecurityapi.VersionLatest
	plugin := &podsecurity.Admission{
		Configuration: &podsecurityconfig.PodSecurityConfiguration{Defaults: podsecurityconfig.PodSecurityDefaults{
			Enforce: privileged, EnforceVersion: latest, Audit: privileged, AuditVersion: latest, Warn: privileged, WarnVersion: latest,
		}},
		Evaluator: evaluator, Metrics: metrics.NewPrometheusRecorder(podsecurityapi.GetAPIVersion()), PodSpecExtractor: podsecurity.DefaultPodSpecExtractor{},
		NamespaceGetter: namespaces, PodLister: pods,
	}
	return plugin, errors.Join(plugin.CompleteConfiguration(), plugin.ValidateConfiguration())
}

// Pod evaluates the creation of a pod in a namespace with these labels. It returns the refusal, nil if there is
// none, and the warnings.
func Pod(ctx context.Context, namespace string, labels map[string]string, pod *corev1.Pod) (*metav1.Status, []string, error) {
	plugin, err := New(labelled{namespace, labels}, labelled{})
	if err != nil {
		return nil, nil, err
	}
	response := plugin.Validate(ctx, &podsecurityapi.AttributesRecord{
		Name: pod.Name, Namespace: namespace, Kind: corev1.SchemeGroupVersion.WithKind("Pod"), Resource: corev1.SchemeGroupVersion.WithResource("pods"),
		Operation: admissionv1.Create, Object: pod,
	})
	if response.Allowed {
		return nil, response.Warnings, nil
	}
	status := &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: 403}
	if response.Result != nil {
		status.Message = response.Result.Message
	}
	return status, response.Warnings, nil
}

// labelled is the only namespace there is.
type labelled struct {
	name   string
	labels map[string]string
}

// GetNamespace implements [podsecurity.NamespaceGetter].
func (l labelled) GetNamespace(_ context.Context, name string) (*corev1.Namespace, error) {
	if name != l.name {
		return nil, fmt.Errorf("the namespace %s is not known", name)
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.name, Labels: l.labels}}, nil
}

// ListPods implements [podsecurity.PodLister]: the creation of a pod asks for no others.
func (labelled) ListPods(context.Context, string) ([]*corev1.Pod, error) { return nil, nil }
