// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"errors"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
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

var nodeOperators = map[corev1.NodeSelectorOperator]selection.Operator{
	corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpNotIn: selection.NotIn, corev1.NodeSelectorOpExists: selection.Exists,
	corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist, corev1.NodeSelectorOpGt: selection.GreaterThan, corev1.NodeSelectorOpLt: selection.LessThan,
}

// checkNodeTerm checks required and preferred terms by the rules of the scheduler: a pod with
// another preferred term is stored, and never scheduled.
func checkNodeTerm(c *typeChecker, at *field.Path, term *corev1.NodeSelectorTerm) {
	for i, r := range term.MatchExpressions {
		operator, known := nodeOperators[r.Operator]
		if !known || r.Key == "" { // the table checks it
			continue
		}
		var problems utilerrors.Aggregate
		if _, err := labels.NewRequirement(r.Key, operator, r.Values, field.WithPath(at.Child("matchExpressions").Index(i))); errors.As(err, &problems) {
			for _, each := range problems.Errors() {
				if one := (*field.Error)(nil); errors.As(each, &one) {
					c.errs = append(c.errs, one)
				}
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

func checkToleration(c *typeChecker, at *field.Path, t *corev1.Toleration) {
	if t.Key == "" && t.Operator != corev1.TolerationOpExists {
		c.invalid(at.Child("operator"), t.Operator, "must be Exists without a key")
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		c.invalid(at.Child("effect"), t.Effect, "must be NoExecute beside tolerationSeconds")
	}
	at = at.Child("value")
	switch t.Operator {
	case corev1.TolerationOpEqual, "":
		c.invalidEach(at, t.Value, validation.IsValidLabelValue(t.Value))
	case corev1.TolerationOpExists:
		if t.Value != "" {
			c.invalid(at, t.Value, "may not be set beside the operator Exists")
		}
	case corev1.TolerationOpLt, corev1.TolerationOpGt:
		if number, err := strconv.ParseInt(t.Value, 10, 64); err != nil || strconv.FormatInt(number, 10) != t.Value {
			c.invalid(at, t.Value, "must be a whole number")
		}
	}
}

func checkSpread(c *typeChecker, at *field.Path, t *corev1.TopologySpreadConstraint) {
	if t.MinDomains != nil && t.WhenUnsatisfiable != corev1.DoNotSchedule {
		c.invalid(at.Child("minDomains"), *t.MinDomains, "whenUnsatisfiable must be DoNotSchedule")
	}
	c.labelKeys(at.Child("matchLabelKeys"), t.MatchLabelKeys, t.LabelSelector, true)
}

// labelKeys checks label keys whose values a term takes from the pod.
func (c *typeChecker) labelKeys(at *field.Path, keys []string, selector *metav1.LabelSelector, distinct bool) {
	if len(keys) > 0 && selector == nil {
		c.invalid(at, keys, "may be set beside a labelSelector alone")
		return
	}
	for i, key := range keys {
		if !distinct {
			break
		}
		_, taken := selector.MatchLabels[key]
		if taken || slices.ContainsFunc(selector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return r.Key == key }) {
			c.invalid(at.Index(i), key, "is in labelSelector too")
		}
	}
}

func checkPodTerm(c *typeChecker, at *field.Path, t *corev1.PodAffinityTerm) {
	c.labelKeys(at.Child("matchLabelKeys"), t.MatchLabelKeys, t.LabelSelector, true)
	c.labelKeys(at.Child("mismatchLabelKeys"), t.MismatchLabelKeys, t.LabelSelector, false)
	for i, key := range t.MatchLabelKeys {
		if slices.Contains(t.MismatchLabelKeys, key) {
			c.invalid(at.Child("matchLabelKeys").Index(i), key, "is in mismatchLabelKeys too")
		}
	}
}

func checkNodeSelector(c *typeChecker, at *field.Path, s *corev1.NodeSelector) {
	selects := func(term corev1.NodeSelectorTerm) bool { return len(term.MatchExpressions)+len(term.MatchFields) > 0 }
	at = at.Child("nodeSelectorTerms")
	if len(s.NodeSelectorTerms) > 0 && !slices.ContainsFunc(s.NodeSelectorTerms, selects) {
		c.required(at, "a term without expressions selects no node, so that no pod could run anywhere")
	}
}

func checkHostAlias(c *typeChecker, at *field.Path, a *corev1.HostAlias) {
	if a.IP != "" { // the table checks it
		c.ip(at.Child("ip"), a.IP)
	}
}

func (c *typeChecker) ip(at *field.Path, ip string) {
	c.errs = append(c.errs, validation.IsValidIPForLegacyField(at, ip, true, nil)...)
}
