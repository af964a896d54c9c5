// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// has reports whether a list contains a value or "*".
func has(list []string, value string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, value)
}

// ruleCovers reports whether a rule matches a resource, optionally with a subresource
// after a slash, in any version.
func ruleCovers(rule admissionregistrationv1.RuleWithOperations, group, resource string) bool {
	if !has(rule.APIGroups, group) {
		return false
	}
	base, sub, _ := strings.Cut(resource, "/")
	return slices.ContainsFunc(rule.Resources, func(r string) bool {
		ofBase, ofSub, _ := strings.Cut(r, "/")
		return (ofBase == "*" || ofBase == base) && (ofSub == "*" || ofSub == sub)
	})
}

// ruleFor reports whether a rule matches one of the operations; none means any.
func ruleFor(rule admissionregistrationv1.RuleWithOperations, operations ...admissionregistrationv1.OperationType) bool {
	return len(operations) == 0 || slices.Contains(rule.Operations, admissionregistrationv1.OperationAll) ||
		slices.ContainsFunc(operations, func(o admissionregistrationv1.OperationType) bool { return slices.Contains(rule.Operations, o) })
}

// covers reports whether a rule of the webhook matches the resource and one of the
// operations.
func (w *webhook) covers(group, resource string, operations ...admissionregistrationv1.OperationType) bool {
	return slices.ContainsFunc(w.Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
		return ruleFor(r, operations...) && ruleCovers(r, group, resource)
	})
}

// wildcard reports whether a rule matches all groups, or all resources of a group.
func wildcard(rule admissionregistrationv1.RuleWithOperations) bool {
	return slices.Contains(rule.APIGroups, "*") || slices.ContainsFunc(rule.Resources, func(r string) bool { return strings.HasPrefix(r, "*") })
}

// isClusterScoped covers the built-in resources that rules here ask about.
func isClusterScoped(group, resource string) bool {
	base, _, _ := strings.Cut(resource, "/")
	return slices.Contains(clusterScoped[group], base)
}

var clusterScoped = map[string][]string{
	"":                             {"nodes", "namespaces", "persistentvolumes", "componentstatuses"},
	"storage.k8s.io":               {"storageclasses", "csidrivers", "csinodes", "volumeattachments", "volumeattributesclasses"},
	"certificates.k8s.io":          {"certificatesigningrequests", "clustertrustbundles"},
	"scheduling.k8s.io":            {"priorityclasses"},
	"node.k8s.io":                  {"runtimeclasses"},
	"apiextensions.k8s.io":         {"customresourcedefinitions"},
	"apiregistration.k8s.io":       {"apiservices"},
	"rbac.authorization.k8s.io":    {"clusterroles", "clusterrolebindings"},
	"networking.k8s.io":            {"ingressclasses", "ipaddresses", "servicecidrs"},
	"admissionregistration.k8s.io": {"mutatingwebhookconfigurations", "validatingwebhookconfigurations", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "validatingadmissionpolicies", "validatingadmissionpolicybindings"},
	"authentication.k8s.io":        {"tokenreviews", "selfsubjectreviews"},
	"authorization.k8s.io":         {"subjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"},
	"flowcontrol.apiserver.k8s.io": {"flowschemas", "prioritylevelconfigurations"},
	"resource.k8s.io":              {"deviceclasses", "resourceslices"},
}

// namespacedResources are the namespaced built-in resources.
var namespacedResources = map[string][]string{
	"": {"pods", "services", "configmaps", "secrets", "serviceaccounts", "endpoints", "events", "limitranges", "resourcequotas",
		"persistentvolumeclaims", "podtemplates", "replicationcontrollers", "bindings"},
	"apps":                      {"deployments", "statefulsets", "daemonsets", "replicasets", "controllerrevisions"},
	"batch":                     {"jobs", "cronjobs"},
	"autoscaling":               {"horizontalpodautoscalers"},
	"policy":                    {"poddisruptionbudgets"},
	"discovery.k8s.io":          {"endpointslices"},
	"coordination.k8s.io":       {"leases"},
	"events.k8s.io":             {"events"},
	"networking.k8s.io":         {"ingresses", "networkpolicies"},
	"rbac.authorization.k8s.io": {"roles", "rolebindings"},
}

// resourceName returns "group/resource" for messages.
func resourceName(group, resource string) string {
	if group == "" {
		return resource
	}
	return resource + "." + group
}

// ruleText summarizes a rule for messages.
func ruleText(rule admissionregistrationv1.RuleWithOperations) string {
	group := strings.Join(rule.APIGroups, ",")
	if group == "" {
		group = `""`
	}
	return group + "/" + strings.Join(rule.APIVersions, ",") + " " + strings.Join(rule.Resources, ",")
}

// ClusterScoped reports whether a built-in resource is cluster-scoped.
func ClusterScoped(group, resource string) bool { return isClusterScoped(group, resource) }
