// SPDX-License-Identifier: Apache-2.0

// Package imagepull controls how pods get their images: always from the registry, like
// the AlwaysPullImages admission plugin, only from some registries, and not by the tag
// latest. A mutating webhook sets the pull policy. A validating webhook refuses
// violations in the final pod, whatever caused them.
//
// Both look at images that a pod begins to use: of containers, init containers,
// ephemeral containers and image volumes.
package imagepull

import (
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
)

// Identifiers of the webhooks in the API.
const (
	MutatingName   = "imagepull.sallyport.io"
	MutatingPath   = "/mutate-imagepull"
	ValidatingName = "validate.imagepull.sallyport.io"
	ValidatingPath = "/validate-imagepull"
)

const ephemeralContainers = "ephemeralcontainers"

// New defines the webhooks, the mutating one only if it has something to set. The error
// reports all problems in the settings.
func New(settings Settings) ([]admission.Webhook, error) {
	if err := settings.Validate(); err != nil {
		return nil, err
	}
	policy := newPolicy(settings)
	conditions := []admissionregistrationv1.MatchCondition{{
		Name:       "not-a-mirror-pod",
		Expression: "!has(object.metadata.annotations) || !('" + MirrorAnnotation + "' in object.metadata.annotations)",
	}}
	var selector *metav1.LabelSelector
	if len(settings.ExemptNamespaces) > 0 {
		selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: settings.ExemptNamespaces,
		}}}
	}
	rule := func(resource string, operations ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
		namespaced := admissionregistrationv1.NamespacedScope
		return admissionregistrationv1.RuleWithOperations{
			Operations: operations,
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}, Scope: &namespaced,
			},
		}
	}
	create, update := admissionregistrationv1.Create, admissionregistrationv1.Update
	var webhooks []admission.Webhook
	if settings.AlwaysPull {
		webhooks = append(webhooks, admission.Webhook{
			Name: MutatingName,
			Path: MutatingPath,
			Type: admission.TypeMutating,
			// The pull policy of an existing container is immutable.
			Rules:             []admissionregistrationv1.RuleWithOperations{rule("pods", create), rule("pods/"+ephemeralContainers, update)},
			NamespaceSelector: selector,
			MatchConditions:   conditions,
			Handler:           &mutator{policy},
		})
	}
	return append(webhooks, admission.Webhook{
		Name:              ValidatingName,
		Path:              ValidatingPath,
		Type:              admission.TypeValidating,
		Rules:             []admissionregistrationv1.RuleWithOperations{rule("pods", create, update), rule("pods/"+ephemeralContainers, update)},
		NamespaceSelector: selector,
		MatchConditions:   conditions,
		Handler:           &validator{policy},
	}), nil
}

var podResource = metav1.GroupVersionResource{Version: "v1", Resource: "pods"}

// concerned answers requests without reading the pod, or returns nil. Of the
// subresources, only ephemeralcontainers can add an image.
func concerned(p *policy, req *admissionv1.AdmissionRequest) *admission.Response {
	switch {
	case req.Resource != podResource:
		return admission.BadRequest("the request is for %s; this webhook is for pods of version v1: correct the rules of its configuration",
			req.Resource.String())
	case req.Operation != admissionv1.Create && req.Operation != admissionv1.Update,
		req.SubResource != "" && req.SubResource != ephemeralContainers,
		p.exemptNamespace(req.Namespace):
		return admission.Allowed()
	case len(req.Object.Raw) == 0:
		return admission.BadRequest("the request has no object; expected a pod")
	}
	return nil
}

func notAPod() *admission.Response {
	return admission.BadRequest("not a pod: metadata, spec, a container or a volume is missing or not an object")
}
