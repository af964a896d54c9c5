// SPDX-License-Identifier: Apache-2.0

package servicetype

import (
	"maps"
	"slices"
	"strings"
)

// violations returns the forbidden features that the Service begins to have, with the
// remedy. It contains no addresses.
func (s Settings) violations(namespace string, now, before *service) []string {
	var out []string
	for _, feature := range s.Forbidden {
		if now.begins(feature, before) && !s.excepted(feature, namespace, now) {
			out = append(out, s.refusal(feature))
		}
	}
	return out
}

// excepted reports whether an exception applies.
func (s Settings) excepted(feature Feature, namespace string, now *service) bool {
	return slices.ContainsFunc(s.Exceptions, func(e Exception) bool {
		return (len(e.Features) == 0 || slices.Contains(e.Features, feature)) &&
			(len(e.Namespaces) == 0 || slices.Contains(e.Namespaces, namespace)) &&
			now.hasLabels(e.Labels) &&
			(len(e.LoadBalancerClasses) == 0 || slices.Contains(e.LoadBalancerClasses, string(now.class)))
	})
}

// refusal says what to do instead. It does not reveal namespaces and labels of
// exceptions: the cluster's operators decide who gets one.
func (s Settings) refusal(feature Feature) string {
	switch feature {
	case ExternalIPs:
		return "spec.externalIPs are not allowed here: leave them out; an Ingress or Gateway leads traffic in"
	case ExternalName:
		return "spec.type ExternalName is not allowed here: let applications use the external name itself"
	case LoadBalancer:
		if classes := s.allowedClasses(); len(classes) > 0 {
			return "spec.type LoadBalancer is not allowed here, unless an exception is met, as for spec.loadBalancerClass " +
				strings.Join(classes, ", ") + ": set that, or use ClusterIP with an Ingress or Gateway"
		}
	}
	return "spec.type " + string(feature) + " is not allowed here: use ClusterIP with an Ingress or Gateway"
}

// allowedClasses returns the classes allowed without further conditions.
func (s Settings) allowedClasses() []string {
	var classes []string
	for _, e := range s.Exceptions {
		if len(e.Namespaces) == 0 && len(e.Labels) == 0 {
			classes = append(classes, e.LoadBalancerClasses...)
		}
	}
	slices.Sort(classes)
	return slices.Compact(classes)
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
