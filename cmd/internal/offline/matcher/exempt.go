// SPDX-License-Identifier: Apache-2.0

package matcher

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/release"
)

// Reviews are requests that ask who a user is, or what it may do. No policy sees them, and since
// Kubernetes 1.37 no webhook: k8s.io/kubernetes/pkg/kubeapiserver/admission/exclusion.
var Reviews = []schema.GroupResource{
	{Group: authenticationv1.GroupName, Resource: "tokenreviews"}, {Group: authenticationv1.GroupName, Resource: "selfsubjectreviews"},
	{Group: authorizationv1.GroupName, Resource: "subjectaccessreviews"}, {Group: authorizationv1.GroupName, Resource: "localsubjectaccessreviews"},
	{Group: authorizationv1.GroupName, Resource: "selfsubjectaccessreviews"}, {Group: authorizationv1.GroupName, Resource: "selfsubjectrulesreviews"},
}

// policies are seen by policies of static manifests alone: k8s.io/apiserver/pkg/admission/plugin/policy/generic/plugin.go.
var policies = []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"}

// IsReview reports whether a resource is one of [Reviews].
func IsReview(of schema.GroupResource) bool { return slices.Contains(Reviews, of) }

// IsPolicy reports whether a resource is a policy or a binding.
func IsPolicy(of schema.GroupResource) bool {
	return of.Group == admissionregistrationv1.GroupName && slices.Contains(policies, of.Resource)
}

// UnseenByWebhooks returns why no webhook sees the request, whatever its rules are, or "". Static says that the webhook is one of
// a static manifest.
func (r Request) UnseenByWebhooks(static bool) string {
	_, sent := release.Version{Minor: r.KubernetesMinor}.Lacks(release.HiddenReviews)
	switch {
	case !static && rules.IsExemptAdmissionConfigurationResource(r.attributes()):
		return "webhook configurations and policies are never sent to webhooks that the API registered"
	case !sent && IsReview(r.Resource.GroupResource()):
		return "since Kubernetes 1.37 such reviews are never sent to webhooks"
	}
	return ""
}

// UnseenByPolicies is [Request.UnseenByWebhooks] of policies.
func (r Request) UnseenByPolicies(static, mutating bool) string {
	switch {
	case mutating && r.Operation == admissionregistrationv1.Delete:
		return "mutating policies see no DELETE"
	case !static && IsPolicy(r.Resource.GroupResource()):
		return "policies and their bindings are never seen by policies that the API registered"
	case IsReview(r.Resource.GroupResource()):
		return "such reviews are never seen by policies"
	}
	return ""
}
