// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint/resourcenames"
	"github.com/sallyport-io/sallyport/internal/kube/selectors"
)

// healing are the resources that nodes need to join and clusters need to recover.
var healing = []struct{ group, resource string }{
	{"", "nodes"}, {"", "nodes/status"}, {"coordination.k8s.io", "leases"},
	{"certificates.k8s.io", "certificatesigningrequests"}, {"certificates.k8s.io", "certificatesigningrequests/approval"},
	{"storage.k8s.io", "csidrivers"}, {"scheduling.k8s.io", "priorityclasses"}, {"", "namespaces"},
	{"discovery.k8s.io", "endpointslices"}, {"", "events"}, {"events.k8s.io", "events"},
}

func wedgeNode() Rule {
	return Rule{
		ID: "wedge-node", Group: groupWedge, Severities: []Severity{Error, Warning}, Source: "incidents",
		What: "A webhook with failurePolicy Fail for nodes, leases, certificate signing requests, CSI drivers, priority classes, namespaces, endpoint slices or events excludes the objects that the cluster needs.",
		Why:  "A cluster cannot bootstrap or recover without them; with namespaces alone, it only cannot create or change any. A namespaceSelector never excludes cluster-scoped objects.",
		Fix:  "Drop the resource from the rules, use Ignore, or exclude the objects that the system writes, by match conditions or selectors.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				if !w.failsClosed() || selectors.OptsIn(w.ObjectSelector) {
					continue
				}
				var matched []string
				for _, r := range healing {
					if !w.covers(r.group, r.resource) {
						continue
					}
					// Match conditions for cluster-scoped objects depend on unknown
					// users or objects, and are trusted.
					if resourcenames.ClusterScoped(r.group, r.resource) && len(w.MatchConditions) > 0 {
						continue
					}
					namespace := metav1.NamespaceSystem
					if resourcenames.ClusterScoped(r.group, r.resource) && r.resource != "namespaces" {
						namespace = ""
					}
					if c.reaches(w, r.group, r.resource, namespace) || r.resource == "leases" && c.reaches(w, r.group, r.resource, "kube-node-lease") {
						matched = append(matched, resourceName(r.group, r.resource))
					}
				}
				if slices.Equal(matched, []string{"namespaces"}) {
					c.webhook(w, Warning, "rules", "failurePolicy Fail on namespaces: while the server is down, no namespace can be created or changed, kube-system included")
				} else if len(matched) > 0 {
					c.webhook(w, Error, "rules", "failurePolicy Fail on %s can stop nodes from joining or healing", strings.Join(matched, ", "))
				}
			}
		},
	}
}
