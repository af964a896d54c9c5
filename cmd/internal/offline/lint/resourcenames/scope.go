// SPDX-License-Identifier: Apache-2.0

package resourcenames

import (
	"slices"
	"strings"
)

// ClusterScoped reports whether a built-in resource that rules ask about is cluster-scoped.
func ClusterScoped(group, resource string) bool {
	base, _, _ := strings.Cut(resource, "/")
	return slices.Contains(InNoNamespace[group], base)
}

// InNoNamespace are the cluster-scoped built-in resources by group.
var InNoNamespace = map[string][]string{
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

// Namespaced are the namespaced built-in resources by group.
var Namespaced = map[string][]string{
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
