// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
)

// connectKinds are the kinds of objects in CONNECT requests.
var connectKinds = map[string]string{
	"pods/exec": "PodExecOptions", "pods/attach": "PodAttachOptions", "pods/portforward": "PodPortForwardOptions", "pods/proxy": "PodProxyOptions",
	"services/proxy": "ServiceProxyOptions", "nodes/proxy": "NodeProxyOptions",
}

func connect() Rule {
	return Rule{
		ID: "connect", Group: groupMatching, Severities: []Severity{Info}, Source: "API documentation",
		What: "A rule is for CONNECT.",
		Why:  "The object of such a request is its options, there is no old object, and an objectSelector never matches.",
		Fix:  "Check that the handler decodes the options, and select by namespace or match conditions instead of labels.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				for _, rule := range w.Rules {
					if !matcher.Names(rule, admissionregistrationv1.Connect) {
						continue
					}
					for _, resource := range rule.Resources {
						kind, ok := connectKinds[resource]
						if !ok {
							kind = "options"
						}
						parent, _, _ := strings.Cut(resource, "/")
						c.webhook(w, Info, "rules", "CONNECT requests on %s carry %s, not %s; objectSelector does not apply", resource, kind, parent)
					}
				}
			}
		},
	}
}
