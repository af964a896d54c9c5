// SPDX-License-Identifier: Apache-2.0

package export

import (
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// selects returns a CEL expression for whether a valid selector matches the labels of
// another expression.
func selects(selector labels.Selector, of string) string {
	var terms []string
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		exists := quote(r.Key()) + " in " + of
		in := "(" + exists + " && " + of + "[" + quote(r.Key()) + "] in " + literal(r.Values().List()) + ")"
		switch r.Operator() {
		case selection.In, selection.Equals:
			terms = append(terms, in)
		case selection.NotIn:
			terms = append(terms, "!"+in)
		case selection.Exists:
			terms = append(terms, exists)
		case selection.DoesNotExist:
			terms = append(terms, "!("+exists+")")
		}
	}
	if len(terms) == 0 {
		return "true"
	}
	return strings.Join(terms, " && ")
}
