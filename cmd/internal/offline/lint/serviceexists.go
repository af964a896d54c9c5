// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/sallyport-io/sallyport/internal/kube/privatepath"
)

func serviceExists() Rule {
	return Rule{
		ID: "service-exists", Group: groupReach, Severities: []Severity{Error}, Source: "practice",
		What: "The Service and its port (default 443) exist, a container has the port that the target port names, the Service has endpoints, and the path is served.",
		Why:  "A typo shows only when the first request arrives, and then every call fails.",
		Fix:  "Correct clientConfig.service, or the Service's ports and selector.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				s := w.ClientConfig.Service
				if s == nil {
					continue
				}
				path := ""
				if s.Path != nil {
					path = *s.Path
				}
				if paths := c.options.Paths[w.Name]; len(paths) > 0 && !served(paths, path) {
					c.webhook(w, Error, "clientConfig/service", "path %q is not served; it is called by %s", path, strings.Join(paths, ", "))
				}
				c.reach(w.title(), s.Namespace, s.Name, s.Port, func(format string, args ...any) {
					c.webhook(w, Error, "clientConfig/service", format, args...)
				})
			}
		},
	}
}

// reach reports why calls cannot arrive.
func (c *checker) reach(about, namespace, name string, port *int32, report func(format string, args ...any)) {
	s := c.serviceOf(namespace, name)
	if s == nil {
		if c.complete["Service"] {
			report("service %s/%s not found", namespace, name)
		} else {
			c.skip(about, "%s", c.outOfSight("Service"))
		}
		return
	}
	number := int32(443)
	if port != nil {
		number = *port
	}
	if !slices.ContainsFunc(s.value.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == number }) {
		report("service %s/%s has no port %d", namespace, name, number)
		return
	}
	behind := c.behind(s)
	if len(behind) == 0 {
		c.seen(about, namespace, name)
	}
	for _, workload := range behind {
		b := &backend{service: s, workload: workload, port: number}
		if _, port := b.targetPort(); port == 0 {
			report("the target port of port %d of service %s/%s names no container port of %s", number, namespace, name, workload.name())
		}
	}
	if c.complete["EndpointSlice"] && len(s.value.Spec.Selector) > 0 && c.endpoints(namespace, name) == 0 {
		report("service %s/%s has no ready endpoint", namespace, name)
	}
}

// endpoints returns the number of ready endpoints of a Service.
func (in *Inventory) endpoints(namespace, name string) int {
	n := 0
	for _, slice := range in.endpointSlices {
		if slice.Namespace != namespace || slice.Labels["kubernetes.io/service-name"] != name {
			continue
		}
		for _, endpoint := range slice.value.Endpoints {
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				n++
			}
		}
	}
	return n
}

// served reports whether a path is one of paths, with or without its private segment.
func served(paths []string, path string) bool {
	public, _ := privatepath.Public(path)
	return slices.Contains(paths, path) || slices.Contains(paths, public)
}
