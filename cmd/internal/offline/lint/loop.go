// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"
)

// components are what pods need to start, with their usual namespaces. wedge-system
// covers those in kube-system.
var components = []struct{ namespace, name string }{
	{"calico-system", "CNI"}, {"tigera-operator", "CNI"}, {"kube-flannel", "CNI"}, {"cilium", "CNI"}, {"weave", "CNI"}, {"openshift-multus", "CNI"}, {"openshift-ovn-kubernetes", "CNI"},
	{"openshift-dns", "DNS"}, {"coredns", "DNS"}, {"rook-ceph", "CSI"}, {"longhorn-system", "CSI"}, {"openebs", "CSI"},
	{"cert-manager", "cert-manager"},
}

func loop() Rule {
	return Rule{
		ID: "loop", Group: groupWedge, Severities: []Severity{Warning}, Source: fromGP,
		What: "No two webhooks with failurePolicy Fail match pods in each other's namespaces, and none matches pods of the network, storage, DNS or certificates that its own server needs.",
		Why:  "After a complete outage, neither can start first.",
		Fix:  "Exclude the namespace of the other webhook, or of the component, by namespaceSelector.",
		check: func(c *checker) {
			var closed []*webhook
			for _, w := range c.webhooks {
				if w.failsClosed() && w.covers("", "pods", "CREATE") {
					closed = append(closed, w)
				}
			}
			// Evaluated once per webhook and namespace: there are few namespaces.
			reaches := make([]map[string]bool, len(closed))
			for i, w := range closed {
				reaches[i] = map[string]bool{}
				for _, other := range closed {
					if n := other.namespace(); n != "" {
						if _, ok := reaches[i][n]; !ok {
							reaches[i][n] = n != w.namespace() && c.reaches(w, "", "pods", n)
						}
					}
				}
			}
			for i, a := range closed {
				var others []string
				for j, b := range closed[i+1:] {
					if a.namespace() != "" && b.namespace() != "" && reaches[i][b.namespace()] && reaches[i+1+j][a.namespace()] {
						others = append(others, b.title())
					}
				}
				if len(others) > 0 {
					more := ""
					if len(others) > 1 {
						more = fmt.Sprintf(" (and %d more)", len(others)-1)
					}
					c.webhook(a, Warning, "", "%s and %s%s each match pods in the namespace of the other", a.title(), others[0], more)
				}
				c.needs(a)
			}
		},
	}
}

// needs reports components that the webhook's server needs and whose pods the webhook
// matches.
func (c *checker) needs(w *webhook) {
	for _, component := range components {
		if component.name == "cert-manager" && !slices.ContainsFunc(injectors, func(key string) bool {
			return strings.HasPrefix(key, "cert-manager.io/") && w.config.Annotations[key] != ""
		}) {
			continue
		}
		there := c.namespacesByName[component.namespace] != nil || len(c.workloadsByNamespace[component.namespace]) > 0
		if there && w.namespace() != component.namespace && c.reaches(w, "", "pods", component.namespace) {
			c.webhook(w, Warning, "", "webhook matches pods of %s in %s, which its own server needs", component.name, component.namespace)
		}
	}
}
