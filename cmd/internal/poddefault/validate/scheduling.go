// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// scheduling checks affinity and spread constraints by the API server's rules
// (k8s.io/api/core/v1: NodeSelectorTerm, PodAffinityTerm, TopologySpreadConstraint).
func (c *checker) scheduling(path *field.Path) {
	unique(c, child(path, "topologySpreadConstraints"), "topologyKey", c.spec.TopologySpreadConstraints, func(t *corev1.TopologySpreadConstraint) string {
		return t.TopologyKey + " " + string(t.WhenUnsatisfiable)
	})
}

func checkNodeTerm(c *checker, at *field.Path, term *corev1.NodeSelectorTerm) {
	for i, r := range term.MatchExpressions {
		at := at.Child("matchExpressions").Index(i)
		if r.Key != "" {
			c.invalidEach(at.Child("key"), r.Key, validation.IsQualifiedName(r.Key))
		}
		switch r.Operator {
		case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
			if len(r.Values) == 0 {
				c.required(at.Child("values"), "In and NotIn need values")
			}
		case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
			if len(r.Values) > 0 {
				c.invalid(at.Child("values"), r.Values, "Exists and DoesNotExist have none")
			}
		case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
			if len(r.Values) != 1 {
				c.invalid(at.Child("values"), r.Values, "Gt and Lt need one value")
			} else if _, err := strconv.ParseInt(r.Values[0], 10, 64); err != nil {
				c.invalid(at.Child("values").Index(0), r.Values[0], "must be a whole number")
			}
		}
	}
	for i, r := range term.MatchFields {
		at := at.Child("matchFields").Index(i)
		c.oneOf(at.Child("key"), r.Key, "metadata.name")
		if r.Operator == corev1.NodeSelectorOpIn || r.Operator == corev1.NodeSelectorOpNotIn {
			if len(r.Values) != 1 {
				c.invalid(at.Child("values"), r.Values, "a field has one value")
			}
		} else if r.Operator != "" {
			c.errs = append(c.errs, field.NotSupported(at.Child("operator"), r.Operator, []string{"In", "NotIn"}))
		}
		for j, value := range r.Values {
			c.invalidEach(at.Child("values").Index(j), value, validation.IsDNS1123Subdomain(value))
		}
	}
}

// MaxNodeTerms limits the terms of one object, and the product when several objects
// have several terms each.
const MaxNodeTerms = 100
