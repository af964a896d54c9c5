// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Matches reports whether the API server calls the webhook for a request according to its
// rules and match policy, and as which resource. It ignores selectors and match conditions.
//
// Equivalents are the resource of the request in other versions and groups, as the API
// server serves them; with the match policy Equivalent, rules for one of those cover the
// request too. It is then converted, and ok tells nothing about whether the caller can do
// that: compare resource with the request's.
func (w Webhook) Matches(req *admissionv1.AdmissionRequest, equivalents ...schema.GroupVersionResource) (resource schema.GroupVersionResource, ok bool) {
	if exempt(req) {
		return schema.GroupVersionResource{}, false
	}
	if w.MatchPolicy == admissionregistrationv1.Exact {
		equivalents = nil
	} else {
		// It was converted to this one for another webhook.
		equivalents = append(slices.Clip(equivalents), schema.GroupVersionResource(req.Resource))
	}
	_, resource, ok = matchRules(w.Rules, req, equivalents)
	return resource, ok
}

// matchRules finds the rule that covers a request, and the resource it covers: that of the
// request or, if no rule covers it, one of its equivalents, in the order of the rules.
func matchRules(rules []admissionregistrationv1.RuleWithOperations, req *admissionv1.AdmissionRequest, equivalents []schema.GroupVersionResource) (rule int, resource schema.GroupVersionResource, ok bool) {
	requested := requestedResource(req)
	for i := range rules {
		if ruleCovers(&rules[i], req, requested) {
			return i, requested, true
		}
	}
	for i := range rules {
		for _, equivalent := range equivalents {
			if equivalent != requested && ruleCovers(&rules[i], req, equivalent) {
				return i, equivalent, true
			}
		}
	}
	return -1, schema.GroupVersionResource{}, false
}

// requestedResource is what the client has asked for: the API server may have converted the
// request since.
func requestedResource(req *admissionv1.AdmissionRequest) schema.GroupVersionResource {
	if req.RequestResource != nil {
		return schema.GroupVersionResource(*req.RequestResource)
	}
	return schema.GroupVersionResource(req.Resource)
}

// ruleCovers tells whether a rule is for a request, were it for this resource
// (k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules).
func ruleCovers(rule *admissionregistrationv1.RuleWithOperations, req *admissionv1.AdmissionRequest, resource schema.GroupVersionResource) bool {
	return scopeCovers(rule.Scope, req.Namespace, resource) &&
		slices.ContainsFunc(rule.Operations, func(operation admissionregistrationv1.OperationType) bool {
			return operation == admissionregistrationv1.OperationAll || operation == admissionregistrationv1.OperationType(req.Operation)
		}) &&
		hasOrAll(rule.APIGroups, resource.Group) && hasOrAll(rule.APIVersions, resource.Version) &&
		slices.ContainsFunc(rule.Resources, func(pattern string) bool {
			name, sub, _ := strings.Cut(pattern, "/")
			return (name == "*" || name == resource.Resource) && (sub == "*" || sub == req.SubResource)
		})
}

func hasOrAll(list []string, value string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, value)
}

// scopeCovers goes by the namespace of the request. That about a namespace has its name
// there, and is about a resource of the cluster.
func scopeCovers(scope *admissionregistrationv1.ScopeType, namespace string, resource schema.GroupVersionResource) bool {
	if scope == nil {
		return true
	}
	namespaced := namespace != "" && resource != schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	switch *scope {
	case admissionregistrationv1.AllScopes:
		return true
	case admissionregistrationv1.NamespacedScope:
		return namespaced
	case admissionregistrationv1.ClusterScope:
		return !namespaced
	default:
		return false
	}
}

// exempt tells whether no webhook is asked, so that one that is wrong can be repaired.
func exempt(req *admissionv1.AdmissionRequest) bool {
	kind := req.Kind
	if req.RequestKind != nil {
		kind = *req.RequestKind
	}
	if kind.Group != admissionregistrationv1.GroupName {
		return false
	}
	switch kind.Kind {
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
		return true
	}
	return false
}
