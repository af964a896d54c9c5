// SPDX-License-Identifier: Apache-2.0

package export

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// selects returns a CEL expression for whether a valid selector matches the labels of
// another expression.
func selects(selector *metav1.LabelSelector, labels string) string {
	var terms []string
	for _, key := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
		terms = append(terms, labels+"[?"+quote(key)+"] == optional.of("+quote(selector.MatchLabels[key])+")")
	}
	for _, r := range selector.MatchExpressions {
		exists := quote(r.Key) + " in " + labels
		in := "(" + exists + " && " + labels + "[" + quote(r.Key) + "] in " + literal(r.Values) + ")"
		switch r.Operator {
		case metav1.LabelSelectorOpIn:
			terms = append(terms, in)
		case metav1.LabelSelectorOpNotIn:
			terms = append(terms, "!"+in)
		case metav1.LabelSelectorOpExists:
			terms = append(terms, exists)
		case metav1.LabelSelectorOpDoesNotExist:
			terms = append(terms, "!("+exists+")")
		}
	}
	if len(terms) == 0 {
		return "true"
	}
	return strings.Join(terms, " && ")
}
