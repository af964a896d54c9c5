// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
)

func workloadServiceType() Rule {
	return Rule{
		ID: "workload-service-type", Group: groupWorkload, Severities: []Severity{Warning}, Source: fromGP,
		What: "The Service of webhooks is of type ClusterIP.",
		Why:  "Clients outside the cluster should not be able to probe admission.",
		Fix:  "Set type: ClusterIP.",
		check: func(c *checker) {
			seen := map[*typed[corev1.Service]]bool{}
			for _, w := range c.webhooks {
				ref := w.ClientConfig.Service
				if ref == nil {
					continue
				}
				s := c.serviceOf(ref.Namespace, ref.Name)
				if s == nil {
					c.seen(w.title(), ref.Namespace, ref.Name)
					continue
				}
				if seen[s] {
					continue
				}
				seen[s] = true
				if kind := cmp.Or(s.value.Spec.Type, corev1.ServiceTypeClusterIP); kind != corev1.ServiceTypeClusterIP {
					c.object(s.Object, Warning, "/spec/type", "service %s has type %s", s.Name, kind)
				}
			}
		},
	}
}
