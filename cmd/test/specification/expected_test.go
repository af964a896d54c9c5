// SPDX-License-Identifier: Apache-2.0

package specification

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	kubeflow "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyport "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
)

// expectedDifference is a row of the last table of docs/poddefault.md: a rule, and cases in which the server does not yet
// follow it.
type expectedDifference struct {
	rule string
	is   func(compared) bool
}

func expectedDifferences() []expectedDifference {
	return []expectedDifference{
		{"a label that a PodDefault adds selects no other PodDefault", selectedByAdded},
		{"a conflict is decided when the object is tried: `Deny` denies, and `Skip` skips, whatever comes later", hiddenConflict},
		{"placeholders see labels of objects applied before", placeholderOfLaterLabel},
		{"an object that is skipped is recorded with its generation and the reason", unrecordedSkip},
		{"an object that an earlier call for the request has applied stays selected", unselected},
		{"an object that would be skipped without its alternative does not count as one", skippedAlternative},
		{"what `Skip` drops stays dropped", skippedForSkipped},
	}
}

func (c compared) expected() *expectedDifference {
	for _, e := range expectedDifferences() {
		if e.is(c) {
			return &e
		}
	}
	return nil
}

// agreesWithout reports whether the server follows the specification if there are no such objects: then they are the cause. There
// must be one.
func (c compared) agreesWithout(cause func(o *object) bool) bool {
	without, found := world{}, false
	for i, o := range c.PodDefaults {
		if is := cause(&object{sallyport.ClusterPodDefaultSpec{PodDefaultSpec: o.Spec}, o.ObjectMeta, false, ""}); is {
			found = true
		} else {
			without.PodDefaults = append(without.PodDefaults, c.PodDefaults[i])
		}
	}
	for i, o := range c.ClusterPodDefaults {
		if is := cause(&object{o.Spec, o.ObjectMeta, true, ""}); is {
			found = true
		} else {
			without.ClusterPodDefaults = append(without.ClusterPodDefaults, c.ClusterPodDefaults[i])
		}
	}
	if !found {
		return false
	}
	rest := both(c.t, without, c.pod)
	if cause, _ := difference(rest); cause == "" {
		return true
	}
	e := rest.expected() // for another cause
	return e != nil
}

// selectedByAdded reports whether a label that an object adds selects another object.
func selectedByAdded(c compared) bool {
	return c.agreesWithout(func(o *object) bool {
		if matches(&o.Selector, c.pod.Labels) {
			return false
		}
		return slices.ContainsFunc(specs(c.world), func(s namedSpec) bool {
			for key, value := range o.Selector.MatchLabels {
				if s.Labels[key] == value {
					return true
				}
			}
			return false
		})
	})
}

// placeholderOfLaterLabel reports whether an object refers to a label that it, or a later object, adds.
func placeholderOfLaterLabel(c compared) bool {
	return c.agreesWithout(func(o *object) bool {
		all := specs(c.world)
		i := slices.IndexFunc(all, func(s namedSpec) bool { return s.name == o.String() })
		for _, found := range placeholder.FindAllStringSubmatch(text(o.PodDefaultSpec), -1) {
			if _, there := c.pod.Labels[found[1]]; o.Substitute && !there && i >= 0 &&
				slices.ContainsFunc(all[i:], func(s namedSpec) bool { return s.Labels[found[1]] != "" }) {
				return true
			}
		}
		return false
	})
}

// hiddenConflict reports whether the server overlooks a conflict because a later object replaces the value anyway.
func hiddenConflict(c compared) bool {
	conflicts := only(slices.Concat(c.outcome.Denied, c.outcome.Warnings), func(f Finding) bool {
		return f.What == "conflict" || f.What == "skipped" && f.Element != ""
	})
	return c.stored != nil && c.agreesWithout(func(o *object) bool {
		all := specs(c.world)
		at := func(name string) int { return slices.IndexFunc(all, func(s namedSpec) bool { return s.name == name }) }
		return slices.ContainsFunc(conflicts, func(f Finding) bool {
			field, _, _ := strings.Cut(f.Element, " ")
			replaces := o.ConflictPolicy == kubeflow.ConflictOverride || o.ConflictPolicy == "" && slices.Contains(lastWins, field)
			return replaces && at(o.String()) > at(f.Object) && namedSpec{"", o.PodDefaultSpec}.has(f.Element)
		})
	})
}

// namedSpec is the spec of an object, named as in the specification.
type namedSpec struct {
	name string
	kubeflow.PodDefaultSpec
}

// has reports whether the spec has the field of an element such as "Env A of container main".
func (s namedSpec) has(element string) bool {
	field, _, _ := strings.Cut(strings.Fields(element)[0], ".")
	if field == "SecurityContext" {
		return s.PodSecurityContext != nil || s.ContainerSecurityContext != nil
	}
	value := reflect.ValueOf(s.PodDefaultSpec).FieldByName(field)
	return value.IsValid() && !value.IsZero()
}

// specs returns the specs of all objects in order.
func specs(w world) []namedSpec {
	var result []namedSpec
	for _, o := range w.request(nil).inOrder() {
		result = append(result, namedSpec{o.String(), o.PodDefaultSpec})
	}
	return result
}

// unrecordedSkip reports whether the pods differ in annotations of skips alone.
func unrecordedSkip(c compared) bool {
	if c.stored == nil || len(c.outcome.Denied) > 0 {
		return false
	}
	return c.equalWithout("skipped-")
}

// equalWithout compares the pods without some annotations.
func (c compared) equalWithout(annotations ...string) bool {
	without := func(pod *corev1.Pod) *corev1.Pod {
		pod = normal(defaulted(pod))
		maps.DeleteFunc(pod.Annotations, func(key, _ string) bool {
			return slices.ContainsFunc(annotations, func(part string) bool { return strings.Contains(key, part) })
		})
		return pod
	}
	return c.stored != nil && cmp.Equal(without(c.outcome.Pod), without(c.stored), cmpopts.EquateEmpty())
}

// skippedAlternative reports whether the server denies a pod because of an alternative that is skipped.
func skippedAlternative(c compared) bool {
	return len(c.outcome.Denied) == 0 && strings.Contains(c.message, "are alternatives of the exclusive group") &&
		slices.ContainsFunc(specs(c.world), func(s namedSpec) bool { return s.ExclusiveGroup != "" && slices.Contains(c.skipped(), s.name) })
}

// skippedForSkipped reports whether the server applies an object that is skipped because of another that is skipped later.
func skippedForSkipped(c compared) bool {
	if c.stored == nil || len(c.outcome.Denied) > 0 || len(c.skipped()) < 2 {
		return false
	}
	skips := func(pod *corev1.Pod) (n int) {
		for key := range pod.Annotations {
			if strings.Contains(key, "skipped-") {
				n++
			}
		}
		return n
	}
	return skips(c.stored) < skips(c.outcome.Pod)
}

// skipped returns the objects that the specification skips.
func (c compared) skipped() (names []string) {
	for _, w := range c.outcome.Warnings {
		if w.What == "skipped" {
			names = append(names, w.Object)
		}
	}
	return names
}

// unselected reports whether a label of the pod unselects an object that an earlier call has applied.
func unselected(c compared) bool {
	d := decision{Request: Request{Pod: c.pod}, sent: sent(c.pod)}
	return c.agreesWithout(func(o *object) bool { return d.applied(o) && !matches(&o.Selector, c.pod.Labels) })
}
