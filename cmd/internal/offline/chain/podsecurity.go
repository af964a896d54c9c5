// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"errors"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiserveradmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"
	podsecurity "k8s.io/pod-security-admission/admission"
	podsecurityapi "k8s.io/pod-security-admission/api"

	podsecurityplugin "github.com/sallyport-io/sallyport/cmd/internal/offline/podsecurity"
)

// podSecurity is kube-apiserver's plugin PodSecurity with its default configuration: what counts are
// the labels of namespaces.
func (e *evaluation) podSecurity(ctx context.Context, a apiserveradmission.Attributes) error {
	operation := a.GetOperation()
	resource := a.GetResource().GroupResource()
	extractor := podsecurity.DefaultPodSpecExtractor{}
	if operation != apiserveradmission.Create && operation != apiserveradmission.Update || resource != corev1.Resource("namespaces") && !extractor.HasPodSpec(resource) {
		return nil
	}
	plugin, err := podsecurityplugin.New(e.Release, podsecurity.NamespaceGetterFromListerAndClient(e.namespaceLister(), noClient()), e)
	if err != nil {
		return err
	}
	response := plugin.Validate(ctx, &podsecurityapi.AttributesRecord{
		Name: a.GetName(), Namespace: a.GetNamespace(), Kind: a.GetKind(), Resource: a.GetResource(), Subresource: a.GetSubresource(),
		Operation: admissionv1.Operation(operation), Object: a.GetObject(), OldObject: a.GetOldObject(), Username: a.GetUserInfo().GetName(),
	})
	step := e.add(Step{Phase: PodSecurity, Name: "PodSecurity", Outcome: Allowed})
	for _, text := range response.Warnings {
		warning.AddWarning(ctx, "", text)
		step.Outcome = Warned
		step.Messages = append(step.Messages, text)
	}
	for key, value := range response.AuditAnnotations {
		if err := a.AddAnnotation(podsecurityapi.AuditAnnotationPrefix+key, value); err != nil {
			return err
		}
		if key != podsecurityapi.EnforcedPolicyAnnotationKey && step.Outcome == Allowed {
			step.Outcome = Audited
		}
	}
	if response.Allowed {
		return nil
	}
	// As k8s.io/kubernetes/plugin/pkg/admission/security/podsecurity.
	step.Outcome = Denied
	denied := &apierrors.StatusError{}
	if err := apiserveradmission.NewForbidden(a, errors.New("Not allowed by PodSecurity")); !errors.As(err, &denied) { //nolint:staticcheck // its words
		return err
	}
	if result := response.Result; result != nil {
		step.Messages = append(step.Messages, result.Message)
		denied.ErrStatus.Message = result.Message
		if result.Reason != "" {
			denied.ErrStatus.Reason = result.Reason
		}
		if result.Code != 0 {
			denied.ErrStatus.Code = result.Code
		}
		if result.Details != nil {
			denied.ErrStatus.Details = result.Details
		}
	}
	return denied
}

// ListPods implements [podsecurity.PodLister] with the pods among the objects.
func (e *evaluation) ListPods(_ context.Context, namespace string) ([]*corev1.Pod, error) {
	var out []*corev1.Pod
	for _, o := range e.Objects {
		if o.GVK() != (schema.GroupVersionKind{Version: "v1", Kind: "Pod"}) || o.Namespace != namespace {
			continue
		}
		pod := &corev1.Pod{}
		if err := o.Decode(pod); err != nil {
			return nil, err
		}
		out = append(out, pod)
	}
	return out, nil
}
