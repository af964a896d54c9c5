// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint/terms"
)

// exclusive reports whether selectors or a pair of opposite match conditions prove that
// no request matches both webhooks.
func exclusive(a, b *webhook) bool {
	return disjoint(a.NamespaceSelector, b.NamespaceSelector) || disjoint(a.ObjectSelector, b.ObjectSelector) ||
		slices.ContainsFunc(a.MatchConditions, func(x admissionregistrationv1.MatchCondition) bool {
			return slices.ContainsFunc(b.MatchConditions, func(y admissionregistrationv1.MatchCondition) bool {
				return terms.Opposite(x.Expression, y.Expression) || terms.Opposite(y.Expression, x.Expression)
			})
		})
}
