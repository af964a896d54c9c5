// SPDX-License-Identifier: Apache-2.0

package lint

func wedgeSelf() Rule {
	return Rule{
		ID: "wedge-self", Group: groupWedge, Severities: []Severity{Error}, Source: fromGP,
		What: "A webhook for pods with failurePolicy Fail excludes the pods of its own server.",
		Why:  "Otherwise they cannot be recreated once all of them are gone.",
		Fix:  "Exclude its namespace: namespaceSelector with kubernetes.io/metadata.name NotIn [its namespace]; or its pods, by an objectSelector.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				s := w.ClientConfig.Service
				if s == nil || !w.failsClosed() || !w.covers("", "pods", "CREATE") || c.ownPodsExcluded(w, s) {
					continue
				}
				c.webhook(w, Error, "rules", "webhook matches pods in its own namespace %s; its server cannot restart", s.Namespace)
			}
		},
	}
}
