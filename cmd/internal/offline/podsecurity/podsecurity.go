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

	"github.com/sallyport-io/sallyport/cmd/internal/offline/release"
)

// New returns the plugin of a release; of the newest if it is not known.
func New(of release.Version, namespaces podsecurity.NamespaceGetter, pods podsecurity.PodLister) (*podsecurity.Admission, error) {
	newest, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return nil, err
	}
	var evaluator policy.Evaluator = newest
	if of.Known() {
		evaluator = ofRelease{newest, podsecurityapi.MajorMinorVersion(1, of.Minor)}
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

// ofRelease evaluates as an API server does whose newest version of the standards is own.
type ofRelease struct {
	policy.Evaluator
	own podsecurityapi.Version
}

// EvaluatePod implements [policy.Evaluator].
func (e ofRelease) EvaluatePod(asked podsecurityapi.LevelVersion, meta *metav1.ObjectMeta, spec *corev1.PodSpec) []policy.CheckResult {
	if e.own.Older(asked.Version) {
		asked.Version = e.own
	}
	return e.Evaluator.EvaluatePod(asked, meta, spec)
}

// Pod evaluates the creation of a pod in a namespace with these labels, in the newest release. It returns the refusal, nil if
// there is none, and the warnings.
func Pod(ctx context.Context, namespace string, labels map[string]string, pod *corev1.Pod) (*metav1.Status, []string, error) {
	return PodOf(ctx, release.Version{}, namespace, labels, pod)
}

// PodOf is [Pod] in a release.
func PodOf(ctx context.Context, of release.Version, namespace string, labels map[string]string, pod *corev1.Pod) (*metav1.Status, []string, error) {
	plugin, err := New(of, labelled{namespace, labels}, labelled{})
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
