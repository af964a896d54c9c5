// SPDX-License-Identifier: Apache-2.0

package policyrules

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// wildcard returns the first rule that is about all groups, or all resources.
func (p *Policy) wildcard() (int, bool) {
	i := slices.IndexFunc(p.rules(), func(r admissionregistrationv1.NamedRuleWithOperations) bool {
		return len(r.ResourceNames) == 0 && slices.Contains(r.APIGroups, "*") && slices.ContainsFunc(r.Resources, func(s string) bool { return s == "*" || s == "*/*" })
	})
	return i, i >= 0
}

// refusing calls a function for each policy and binding that can refuse requests.
func (c *checker) refusing(f func(p *Policy, b *Binding)) {
	for _, p := range c.Policies {
		if p.Mutating && !p.failsClosed() {
			continue
		}
		for _, b := range p.enforcing() {
			if !p.optsIn(b) {
				f(p, b)
			}
		}
	}
}

// canFail reports whether the policy fails for an object that has a name alone, or may fail for want of a
// parameter. Unlike a webhook, a policy whose expressions guard what they read cannot fail.
func (c *checker) canFail(p *Policy) bool {
	if p.paramKind() != nil || len(p.programs().errs) > 0 || p.Mutating {
		return true
	}
	targets := c.targets(p)
	if len(targets) == 0 {
		targets = []target{{Resource: Resource{GroupVersionResource: corev1.SchemeGroupVersion.WithResource("nodes"), Kind: "Node"}}}
	}
	return slices.ContainsFunc(targets, func(t target) bool {
		_, why := p.evaluate(t, admissionregistrationv1.Create, true)
		return why != ""
	})
}

func wedgeWildcard() Rule {
	return Rule{
		ID: "policy-wedge-wildcard", Levels: []Level{Error, Warning}, Source: incidents,
		What: "A policy that refuses requests for every resource has a selector, a match condition or an exclusion, in itself or in its binding.",
		Why:  "If an expression fails, or a parameter is missing, nothing can be written in the whole cluster but policies and bindings: no lease, no node status, no pod.",
		Fix:  "Name the groups and resources that the policy is about, and exclude the system namespaces by namespaceSelector.",
		check: func(c *checker) {
			c.refusing(func(p *Policy, b *Binding) {
				if i, ok := p.wildcard(); ok && !p.narrowed(b) && (b.Match == nil || len(b.Match.ResourceRules) == 0) {
					level := Warning
					if c.canFail(p) {
						level = Error
					}
					c.find(p.Object, level, rulePointer(i), "the rule matches every resource, and the binding "+b.Name+" applies it everywhere: a failure refuses every write of the cluster")
				}
			})
		},
	}
}

// healing are the resources that nodes need to join and clusters need to recover.
var healing = []struct{ group, resource, namespace string }{
	{"", "nodes", ""}, {"", "nodes/status", ""}, {"coordination.k8s.io", "leases", corev1.NamespaceNodeLease},
	{"certificates.k8s.io", "certificatesigningrequests", ""}, {"certificates.k8s.io", "certificatesigningrequests/approval", ""},
	{"storage.k8s.io", "csidrivers", ""}, {"scheduling.k8s.io", "priorityclasses", ""}, {"", "namespaces", metav1.NamespaceSystem},
	{"discovery.k8s.io", "endpointslices", metav1.NamespaceSystem}, {"", "events", metav1.NamespaceSystem}, {"events.k8s.io", "events", metav1.NamespaceSystem},
}

func wedgeNode() Rule {
	return Rule{
		ID: "policy-wedge-node", Levels: []Level{Error, Warning}, Source: incidents,
		What: "A policy that refuses requests, and can fail, for nodes, leases, certificate signing requests, CSI drivers, priority classes, namespaces, endpoint slices or events excludes the objects that the cluster needs, or has match conditions.",
		Why:  "A cluster cannot bootstrap or recover without them. A namespaceSelector never excludes cluster-scoped objects.",
		Fix:  "Drop the resource from the rules, or exclude what the system writes: a match condition such as !request.userInfo.username.startsWith(\"system:\"), or excludeResourceRules.",
		check: func(c *checker) {
			c.refusing(func(p *Policy, b *Binding) {
				if len(p.conditions()) > 0 {
					return // they depend on unknown users and objects, and are trusted
				}
				if _, ok := p.wildcard(); ok && !p.narrowed(b) {
					return // reported by policy-wedge-wildcard
				}
				var matched []string
				level := Warning
				if c.canFail(p) {
					level = Error
				}
				for _, r := range healing {
					if level == Warning && (r.resource == "namespaces" || r.resource == "priorityclasses" || r.resource == "csidrivers") {
						continue // people write them, and the policy is for those
					}
					if p.matches(b, r.group, r.resource, admissionregistrationv1.Create, admissionregistrationv1.Update) && (r.namespace == "" || !c.ExcludesNamespace(p, b, r.namespace)) {
						matched = append(matched, resourceName(r.group, r.resource))
					}
				}
				if len(matched) > 0 {
					c.find(p.Object, level, "/spec/matchConstraints/resourceRules", "a failure of the policy refuses "+strings.Join(matched, ", ")+", which nodes need to join and clusters to recover")
				}
			})
		},
	}
}

func wedgeSystem() Rule {
	return Rule{
		ID: "policy-wedge-system", Levels: []Level{Warning}, Source: incidents,
		What: "A policy that refuses pods or other workloads excludes kube-system.",
		Why:  "The components that run the cluster must not depend on a policy for users: DNS, proxies and storage may not start again.",
		Fix:  "Exclude kube-system in the policy or its binding: namespaceSelector with kubernetes.io/metadata.name NotIn [kube-system].",
		check: func(c *checker) {
			c.refusing(func(p *Policy, b *Binding) {
				if _, ok := p.wildcard(); len(p.conditions()) > 0 || ok && !p.narrowed(b) || c.ExcludesNamespace(p, b, metav1.NamespaceSystem) {
					return
				}
				var matched []string
				for _, r := range [][2]string{{"", "pods"}, {"apps", "deployments"}, {"apps", "daemonsets"}, {"apps", "replicasets"}, {"", "secrets"}, {"", "configmaps"}, {"", "serviceaccounts"}} {
					if p.matches(b, r[0], r[1], admissionregistrationv1.Create, admissionregistrationv1.Update) {
						matched = append(matched, resourceName(r[0], r[1]))
					}
				}
				if len(matched) > 0 {
					c.find(p.Object, Warning, "/spec/matchConstraints", "the binding "+b.Name+" applies the policy to "+strings.Join(matched, ", ")+" in kube-system")
				}
			})
		},
	}
}

func wedgeDefinitions() Rule {
	return Rule{
		ID: "policy-wedge-definitions", Levels: []Level{Warning}, Source: incidents,
		What: "No policy that refuses requests is about CustomResourceDefinitions, APIServices, webhook configurations, roles or their bindings, unless it is narrowed.",
		Why:  "They are what an upgrade, or an administrator who repairs the cluster, has to write.",
		Fix:  "Name the objects in resourceNames, or exclude administrators by a match condition.",
		check: func(c *checker) {
			c.refusing(func(p *Policy, b *Binding) {
				if p.narrowed(b) {
					return
				}
				if _, ok := p.wildcard(); ok {
					return
				}
				var matched []string
				for _, r := range [][2]string{{"apiextensions.k8s.io", "customresourcedefinitions"}, {"apiregistration.k8s.io", "apiservices"},
					{"admissionregistration.k8s.io", "validatingwebhookconfigurations"}, {"admissionregistration.k8s.io", "mutatingwebhookconfigurations"},
					{"rbac.authorization.k8s.io", "clusterroles"}, {"rbac.authorization.k8s.io", "clusterrolebindings"}} {
					if p.matches(b, r[0], r[1]) {
						matched = append(matched, resourceName(r[0], r[1]))
					}
				}
				if len(matched) > 0 {
					c.find(p.Object, Warning, "/spec/matchConstraints", "a failure of the policy refuses "+strings.Join(matched, ", ")+": upgrades and repairs depend on them")
				}
			})
		},
	}
}
