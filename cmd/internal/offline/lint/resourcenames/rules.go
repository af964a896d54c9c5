// SPDX-License-Identifier: Apache-2.0

package resourcenames

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// A Gap is a resource of a webhook's rules that there is not.
type Gap struct {
	// Group is not there, or Problem says what is wrong with a resource of it.
	Group, Problem string
	// Optional is set if the webhook asks for other resources that there are, so that this one, of a custom group,
	// may be absent on purpose.
	Optional bool
}

// Gaps returns what the rules of a webhook name in vain.
func (r *Set) Gaps(rules []admissionregistrationv1.RuleWithOperations) (out []Gap) {
	finds := false
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				switch problem := r.Lacks(group, resource); {
				case !r.Has(group):
					out = append(out, Gap{Group: group})
				case problem != "":
					out = append(out, Gap{Problem: problem, Optional: custom(group)})
				default:
					finds = true
				}
			}
		}
	}
	for i := range out {
		out[i].Optional = out[i].Optional && finds
	}
	return slices.Compact(out)
}

// custom reports whether a group has resources of definitions: those of Kubernetes have no dot, or end with k8s.io.
func custom(group string) bool {
	return strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io")
}
