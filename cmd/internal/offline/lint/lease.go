// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

func leases() Rule {
	return Rule{
		ID: "lease", Group: groupWedge, Severities: []Severity{Warning}, Source: fromGP,
		What: "A webhook for leases excludes kube-node-lease and the namespace of its own server.",
		Why:  "Otherwise heartbeats of nodes stop, or the server cannot elect a leader.",
		Fix:  "Drop leases from the rules, or exclude both namespaces by namespaceSelector.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				if !w.covers("coordination.k8s.io", "leases", "CREATE", "UPDATE") {
					continue
				}
				namespaces := []string{corev1.NamespaceNodeLease}
				if own := w.namespace(); own != "" {
					namespaces = append(namespaces, own)
				}
				namespaces = slices.DeleteFunc(namespaces, func(n string) bool { return !c.reaches(w, "coordination.k8s.io", "leases", n) })
				if len(namespaces) > 0 {
					c.webhook(w, Warning, "rules", "webhook matches leases in %s", strings.Join(namespaces, ", "))
				}
			}
		},
	}
}
