// SPDX-License-Identifier: Apache-2.0

package match

import (
	"context"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
)

// Due returns the injecting objects that a pod with these labels and annotations would be
// merged with if it were created now, in order of application, and those from which it is
// exempt. The labels are those that it would be sent with, without any that objects add.
// Workload is that of [meta.WorkloadOf]. An object is due although
// it may conflict there: conflicts are found only by merging. While an object is rolled
// out, the pod is due the revision of its mark. An error says why the pod
// would be refused, or that the source is not ready.
func Due(ctx context.Context, source Source, namespace, workload string, labels, annotations map[string]string) (due []*plan.Plan, exempted []Exempted, err error) {
	pod := &meta.Metadata{
		Metadata: podmeta.Metadata{Labels: podmeta.LabelsOf(labels), Annotations: podmeta.LabelsOf(annotations)},
		Workload: meta.Workload{Unit: workload},
		History:  &meta.History{Revisions: meta.RevisionsIn(annotations[meta.RevisionsAnnotation]), Stored: true},
	}
	return dueTo(ctx, pod, source, namespace)
}

// DueToStored is [Due] for a stored pod that carries objects, if it were created now from the same template. Labels that
// the carried objects have added are not the template's.
func DueToStored(ctx context.Context, source Source, namespace, workload string, labels, annotations map[string]string, carried []*plan.Plan) (due []*plan.Plan, exempted []Exempted, err error) {
	own := labels
	for _, c := range carried {
		c = c.CarriedBy(annotations)
		for key, value := range own {
			if c.Adds(key, value) {
				own = maps.Clone(own)
				delete(own, key)
			}
		}
	}
	due, exempted, err = Due(ctx, source, namespace, workload, own, annotations)
	if err != nil || len(own) == len(labels) {
		return due, exempted, err
	}
	// No label that an object adds selects an optional one: what selects one that the pod
	// carries is the template's.
	byAll, _, err := Due(ctx, source, namespace, workload, labels, annotations)
	for _, c := range byAll {
		if c.AllowExclude() && plan.IsIn(carried, c) && !plan.IsIn(due, c) {
			due = append(due, c)
		}
	}
	return due, exempted, err
}

// dueTo is [Due].
func dueTo(ctx context.Context, md *meta.Metadata, source Source, namespace string) (due []*plan.Plan, exempted []Exempted, err error) {
	if md.Annotations.Has(meta.MirrorAnnotation) {
		return nil, nil, nil
	}
	b := meta.NewBudget(ctx)
	s := NewMatcher(namespace, md, md.Annotations.Get(meta.ExcludeAnnotation) == "true", &b)
	chosen, err := s.BySent(source)
	if err != nil {
		return nil, nil, err
	}
	if added := labelsBy(chosen.Objects, md.Labels); len(added) > 0 {
		if chosen, _, err = s.ByStored(source, chosen, added); err != nil {
			return nil, nil, err
		}
	}
	return slices.DeleteFunc(slices.Clone(chosen.Objects), func(c *plan.Plan) bool { return !c.Injects() }),
		slices.DeleteFunc(chosen.exempted, func(e Exempted) bool { return !e.Injects() }), nil
}

// labelsBy returns the labels that objects add to those of a pod.
func labelsBy(objects []*plan.Plan, to podmeta.Labels) (added []podmeta.Entry) {
	known := map[string]bool{}
	for _, c := range objects {
		if !c.Injects() {
			continue
		}
		for _, l := range c.Labels {
			if !known[l.Key] && !to.Has(l.Key) {
				known[l.Key] = true
				added = append(added, l)
			}
		}
	}
	return added
}

// Includes reports whether a pod like this stored one, created now, would get the revision
// of c. While c is rolled out, the present step decides that. What the pod carries does not
// count: its annotations, and its managedFields too, can be written by its owner. A
// percentage of single pods includes all pods with generated names, because it was decided
// for their requests, which are gone.
func Includes(ctx context.Context, source Source, c *plan.Plan, pod *metav1.ObjectMeta) (bool, error) {
	md := &meta.Metadata{
		Metadata: podmeta.Metadata{Name: pod.Name, Labels: podmeta.LabelsOf(pod.Labels), Annotations: podmeta.LabelsOf(pod.Annotations)},
		Workload: meta.Workload{Unit: meta.WorkloadOf(pod)}, History: &meta.History{}, Unplaced: pod.GenerateName != "",
	}
	if !md.Unplaced {
		md.Raw = append(append([]byte(`{"name":`), meta.Quote(pod.Name)...), '}')
	}
	due, _, err := dueTo(ctx, md, source, pod.Namespace)
	return slices.ContainsFunc(due, func(other *plan.Plan) bool { return other.String() == c.String() && other.Revision() == c.Revision() }), err
}
