// SPDX-License-Identifier: Apache-2.0

// Package wedge finds webhooks that could block a whole cluster.
package wedge

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/kube/selectors"
)

// OwnPodsCondition is the name of the match condition that excludes a server's own pods
// from its webhooks.
const OwnPodsCondition = "not-own-pods"

// vital are resources without which a cluster neither starts nor heals, and the
// namespaces where they must not depend on a webhook; none for cluster-scoped ones.
var vital = []struct {
	group, resource string
	namespaces      []string
}{
	{"", "pods", []string{metav1.NamespaceSystem}},
	{"", "configmaps", []string{metav1.NamespaceSystem}},
	{"", "secrets", []string{metav1.NamespaceSystem}},
	{"", "serviceaccounts", []string{metav1.NamespaceSystem}},
	{"", "endpoints", []string{metav1.NamespaceSystem}},
	{"", "events", []string{metav1.NamespaceSystem}},
	{"events.k8s.io", "events", []string{metav1.NamespaceSystem}},
	{"discovery.k8s.io", "endpointslices", []string{metav1.NamespaceSystem}},
	{"coordination.k8s.io", "leases", []string{metav1.NamespaceSystem, corev1.NamespaceNodeLease}},
	{"", "namespaces", []string{metav1.NamespaceSystem}}, // the namespace selector matches its own labels
	{"", "nodes", nil},
	{"", "persistentvolumes", nil},
	{"certificates.k8s.io", "certificatesigningrequests", nil},
	{"storage.k8s.io", "csidrivers", nil},
	{"storage.k8s.io", "csinodes", nil},
	{"storage.k8s.io", "volumeattachments", nil},
	{"scheduling.k8s.io", "priorityclasses", nil},
	{"node.k8s.io", "runtimeclasses", nil},
	{"apiextensions.k8s.io", "customresourcedefinitions", nil},
	{"apiregistration.k8s.io", "apiservices", nil},
	{"rbac.authorization.k8s.io", "clusterroles", nil},
	{"rbac.authorization.k8s.io", "clusterrolebindings", nil},
	{"authentication.k8s.io", "tokenreviews", nil},
	{"authorization.k8s.io", "subjectaccessreviews", nil},
}

// Of lists how the webhook could block the whole cluster while its server is down, and what to
// exclude. The namespace is that of the server's own pods, or empty if it is unknown. Such a
// webhook fails closed, and covers all resources, or vital ones without an exclusion
// (Kubernetes' good practices for admission webhooks). Selectors are evaluated by their terms;
// match conditions are trusted to exclude cluster-scoped resources, which no namespace selector can.
func Of(w admission.Webhook, namespace string) []string {
	if w.FailurePolicy == admissionregistrationv1.Ignore || w.AllowWedge != "" {
		return nil
	}
	var out []string
	for i, rule := range w.Rules {
		for _, group := range rule.APIGroups {
			if group == "*" {
				out = append(out, fmt.Sprintf(`rules[%d] covers all API groups: list the groups it needs`, i))
			}
		}
		for _, resource := range rule.Resources {
			if strings.HasPrefix(resource, "*") {
				out = append(out, fmt.Sprintf(`rules[%d] covers all resources (%s): list the resources it needs`, i, resource))
			}
		}
	}
	if selectors.OptsIn(w.ObjectSelector) || len(out) > 0 {
		return out
	}
	for _, v := range vital {
		if !slices.ContainsFunc(w.Rules, func(r admissionregistrationv1.RuleWithOperations) bool { return concerns(r, v.group, v.resource) }) {
			continue
		}
		name := v.resource
		if v.group != "" {
			name += "." + v.group
		}
		if v.namespaces == nil && len(w.MatchConditions) == 0 {
			out = append(out, fmt.Sprintf("it covers %s: exclude those that the cluster needs with an object selector or match conditions", name))
		}
		var needed []string
		for _, of := range v.namespaces {
			if !selectors.ExcludesNamespace(w.NamespaceSelector, of) {
				needed = append(needed, of)
			}
		}
		if len(needed) > 0 {
			out = append(out, fmt.Sprintf("it covers %s in %s: exclude these namespaces with a namespace selector, %s NotIn [%s]",
				name, strings.Join(needed, " and "), corev1.LabelMetadataName, strings.Join(needed, " ")))
		}
		if v.resource == "pods" && namespace != "" && !excludesOwnPods(w, namespace) {
			out = append(out, fmt.Sprintf("it covers the pods of its own server in %s, which could not restart: exclude the namespace, or the pods with an object selector",
				namespace))
		}
	}
	return out
}

// concerns reports whether a rule covers a resource, or a subresource that controls it.
func concerns(rule admissionregistrationv1.RuleWithOperations, group, resource string) bool {
	if !slices.Contains(rule.APIGroups, group) {
		return false
	}
	return slices.ContainsFunc(rule.Resources, func(r string) bool {
		base, sub, _ := strings.Cut(r, "/")
		return base == resource && slices.Contains([]string{"", "*", "status", "approval", "finalize", "binding"}, sub)
	})
}

func excludesOwnPods(w admission.Webhook, namespace string) bool {
	return selectors.ExcludesNamespace(w.NamespaceSelector, namespace) || len(selectors.Terms(w.ObjectSelector)) > 0 ||
		slices.ContainsFunc(w.MatchConditions, func(m admissionregistrationv1.MatchCondition) bool { return m.Name == OwnPodsCondition })
}
