// SPDX-License-Identifier: Apache-2.0

package carried

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/drift"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
)

// exemptedBy returns what exempts a pod from objects that it does not carry, each once.
func exemptedBy(findings []drift.Finding) (out []*exempt.Exemption) {
	for _, f := range findings {
		if f.State == drift.Exempt && !slices.Contains(out, f.By) {
			out = append(out, f.By)
		}
	}
	return out
}

// A DriftExemption is an exemption that has not ended, with the pods that do not carry a
// PodDefault because of it.
type DriftExemption struct {
	Namespace string `json:"namespace"`
	*exempt.Exemption
	Pods int `json:"pods"`
}

// inForce returns the exemptions of the namespaces that were read, in order of their end.
func (f *fleet) inForce(pods map[*exempt.Exemption]int) []DriftExemption {
	out, now := []DriftExemption{}, time.Now()
	for namespace, all := range f.exemptions {
		for _, e := range all {
			if now.Before(e.Until) {
				out = append(out, DriftExemption{namespace, e, pods[e]})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b DriftExemption) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), a.Until.Compare(b.Until), strings.Compare(a.Name, b.Name))
	})
	return out
}
