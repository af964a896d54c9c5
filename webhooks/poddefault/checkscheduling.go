// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// scheduling checks affinity and spread constraints by the rules of the API server
// (k8s.io/api/core/v1: NodeSelectorTerm, PodAffinityTerm, TopologySpreadConstraint).
func (c *checker) scheduling(path *field.Path) {
	spread := path.Child("topologySpreadConstraints")
	unique(c, spread, "topologyKey", c.spec.TopologySpreadConstraints, func(t *corev1.TopologySpreadConstraint) string {
		return t.TopologyKey + " " + string(t.WhenUnsatisfiable)
	})
	for i, constraint := range c.spec.TopologySpreadConstraints {
		at := spread.Index(i)
		if constraint.MaxSkew <= 0 {
			c.invalid(at.Child("maxSkew"), constraint.MaxSkew, "must be greater than 0")
		}
		c.topologyKey(at.Child("topologyKey"), constraint.TopologyKey)
		if constraint.WhenUnsatisfiable == "" {
			c.required(at.Child("whenUnsatisfiable"), "choose DoNotSchedule or ScheduleAnyway")
		}
		c.oneOf(at.Child("whenUnsatisfiable"), string(constraint.WhenUnsatisfiable), "DoNotSchedule", "ScheduleAnyway")
	}
	affinity := c.spec.Affinity
	if affinity == nil {
		return
	}
	path = path.Child("affinity")
	if node := affinity.NodeAffinity; node != nil {
		path := path.Child("nodeAffinity")
		if required := node.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
			at := path.Child("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
			selects := func(term corev1.NodeSelectorTerm) bool { return len(term.MatchExpressions)+len(term.MatchFields) > 0 }
			if !slices.ContainsFunc(required.NodeSelectorTerms, selects) {
				c.required(at, "a term without expressions selects no node, so that no pod could run anywhere")
			}
			for i := range required.NodeSelectorTerms {
				c.nodeTerm(at.Index(i), &required.NodeSelectorTerms[i])
			}
		}
		for i := range node.PreferredDuringSchedulingIgnoredDuringExecution {
			at := path.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i)
			preferred := &node.PreferredDuringSchedulingIgnoredDuringExecution[i]
			c.weight(at.Child("weight"), preferred.Weight)
			c.nodeTerm(at.Child("preference"), &preferred.Preference)
		}
	}
	if pod := affinity.PodAffinity; pod != nil {
		c.podTerms(path.Child("podAffinity"), pod.RequiredDuringSchedulingIgnoredDuringExecution, pod.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if pod := affinity.PodAntiAffinity; pod != nil {
		c.podTerms(path.Child("podAntiAffinity"), pod.RequiredDuringSchedulingIgnoredDuringExecution, pod.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

func (c *checker) podTerms(path *field.Path, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
	for i := range required {
		c.topologyKey(path.Child("requiredDuringSchedulingIgnoredDuringExecution").Index(i).Child("topologyKey"), required[i].TopologyKey)
	}
	for i := range preferred {
		at := path.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i)
		c.weight(at.Child("weight"), preferred[i].Weight)
		c.topologyKey(at.Child("podAffinityTerm", "topologyKey"), preferred[i].PodAffinityTerm.TopologyKey)
	}
}

func (c *checker) topologyKey(path *field.Path, key string) {
	if key == "" {
		c.required(path, "nodes are grouped by a label")
		return
	}
	c.invalidEach(path, key, validation.IsQualifiedName(key))
}

func (c *checker) weight(path *field.Path, weight int32) {
	if weight < 1 || weight > 100 {
		c.invalid(path, weight, "must be in the range 1-100")
	}
}

func (c *checker) nodeTerm(path *field.Path, term *corev1.NodeSelectorTerm) {
	for i, r := range term.MatchExpressions {
		at := path.Child("matchExpressions").Index(i)
		c.invalidEach(at.Child("key"), r.Key, validation.IsQualifiedName(r.Key))
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
		default:
			c.mistakes = append(c.mistakes, field.NotSupported(at.Child("operator"), r.Operator,
				[]string{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"}))
		}
	}
	for i, r := range term.MatchFields {
		at := path.Child("matchFields").Index(i)
		c.oneOf(at.Child("key"), r.Key, "metadata.name")
		c.oneOf(at.Child("operator"), string(r.Operator), "In", "NotIn")
		if len(r.Values) != 1 {
			c.invalid(at.Child("values"), r.Values, "a field has one value")
		}
	}
}
