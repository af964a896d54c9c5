// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// Due returns the injecting objects that a pod with these labels and annotations would be
// merged with if it were created now, in order of application, and those from which it is
// exempt. The labels are those that it would be sent with, without any that objects add.
// Workload is that of [WorkloadOf]. An object is due although
// it may conflict there: conflicts are found only by merging. While an object is rolled
// out, the pod is due the revision of its mark. An error says why the pod
// would be refused, or that the source is not ready.
func Due(ctx context.Context, source Source, namespace, workload string, labels, annotations map[string]string) (due []*Compiled, exempted []Exempted, err error) {
	pod := &metadata{
		labels: labelsOf(labels), annotations: labelsOf(annotations), workload: Workload{unit: workload},
		history: &history{revisions: revisionsIn(annotations[RevisionsAnnotation]), stored: true},
	}
	return dueTo(ctx, pod, source, namespace)
}

// dueTo is [Due].
func dueTo(ctx context.Context, md *metadata, source Source, namespace string) (due []*Compiled, exempted []Exempted, err error) {
	if md.annotations.Has(meta.MirrorAnnotation) {
		return nil, nil, nil
	}
	b := newBounds(ctx)
	s := newMatcher(namespace, md, md.annotations.Get(meta.ExcludeAnnotation) == "true", &b)
	chosen, err := s.bySent(source)
	if err != nil {
		return nil, nil, err
	}
	if added := labelsBy(chosen.objects, md.labels); len(added) > 0 {
		if chosen, _, err = s.byStored(source, chosen, added); err != nil {
			return nil, nil, err
		}
	}
	return slices.DeleteFunc(slices.Clone(chosen.objects), func(c *Compiled) bool { return !c.Injects() }),
		slices.DeleteFunc(chosen.exempted, func(e Exempted) bool { return !e.Injects() }), nil
}

// labelsBy returns the labels that objects add to those of a pod.
func labelsBy(objects []*Compiled, to Labels) (added []entry) {
	known := map[string]bool{}
	for _, c := range objects {
		if !c.Injects() {
			continue
		}
		for _, l := range c.labels {
			if !known[l.key] && !to.Has(l.key) {
				known[l.key] = true
				added = append(added, l)
			}
		}
	}
	return added
}

// labelsOf returns labels as of a pod's bytes.
func labelsOf(set map[string]string) (l Labels) {
	for _, key := range slices.Sorted(maps.Keys(set)) {
		l.list = append(l.list, label{[]byte(key), []byte(set[key])})
	}
	l.reindex()
	return l
}

// Adds reports whether the object adds this label to pods.
func (c *Compiled) Adds(key, value string) bool { return slices.Contains(c.labels, entry{key, value}) }

// Mark is the annotation of pods that the object was applied to.
func (c *Compiled) Mark() string { return c.markOf() }

// Recorded reports whether an annotation of a pod says what was, or must not be, applied
// to it.
func Recorded(key string) bool {
	return key == meta.ExcludeAnnotation || key == meta.MirrorAnnotation || key == meta.DecisionsAnnotation || key == RevisionsAnnotation || isMark(key) ||
		strings.HasPrefix(key, meta.SkipPrefix) || strings.HasPrefix(key, meta.ClusterSkipPrefix)
}

// PassedOver reports whether a pod without the mark of an object was created when the
// object had its current revision. It was then skipped, or left out because a volume is missing.
func (c *Compiled) PassedOver(annotations map[string]string) bool {
	if !listedAmong(annotations[meta.DecisionsAnnotation], []*Compiled{c})[c.decision] {
		return false
	}
	if skipped, ok := annotations[c.skipMark()]; ok {
		return strings.HasPrefix(skipped, c.skipValue(""))
	}
	return len(c.unpack().strayMounts) > 0 // an object without them was in mode Audit, or could not work
}

// ChangedAt returns when the object was last written, ignoring its status, to the second.
func (c *Compiled) ChangedAt() time.Time { return time.Unix(c.changed, 0) }

func changedAt(meta *metav1.ObjectMeta) int64 {
	at := meta.CreationTimestamp.Time
	for _, m := range meta.ManagedFields {
		if m.Subresource == "" && m.Time != nil && m.Time.After(at) {
			at = m.Time.Time
		}
	}
	return at.Unix()
}

// A CarriedMark is the annotation of a pod that an object was applied to.
type CarriedMark struct {
	// Value is the resourceVersion of the object, or whatever somebody has written.
	Annotation, Value string
	// Revision is what the pod records in [RevisionsAnnotation]; empty if it does not.
	Revision string
	Cluster  bool
	// Name is that of the object. It may be cut as in [meta.Mark] if the pod does not list the
	// object in [meta.DecisionsAnnotation].
	Name string
}

// Title names the object in messages, given the pod's namespace.
func (m CarriedMark) Title(namespace string) string {
	if m.Cluster {
		return "ClusterPodDefault " + m.Name
	}
	return "PodDefault " + namespace + "/" + m.Name
}

// Marks returns the marks of a pod, sorted by annotation.
func Marks(annotations map[string]string) []CarriedMark {
	var listed, revisions map[string]string // names and revisions by annotation; computed for the first mark
	var out []CarriedMark
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if !isMark(key) {
			continue
		}
		if listed == nil {
			listed, revisions = map[string]string{}, map[string]string{}
			for decision := range strings.SplitSeq(annotations[meta.DecisionsAnnotation], ",") {
				listed[markFor(decision)] = strings.TrimPrefix(decision, meta.ClusterDecision)
			}
			for decision, revision := range revisionsIn(annotations[RevisionsAnnotation]) {
				revisions[markFor(decision)] = revision
				listed[markFor(decision)] = strings.TrimPrefix(decision, meta.ClusterDecision)
			}
		}
		m := CarriedMark{Annotation: key, Value: annotations[key], Revision: revisions[key], Cluster: strings.HasPrefix(key, meta.ClusterMarkPrefix)}
		if m.Name = listed[key]; m.Name == "" {
			m.Name = strings.TrimPrefix(strings.TrimPrefix(key, meta.MarkPrefix), meta.ClusterMarkPrefix)
		}
		out = append(out, m)
	}
	return out
}

// MarkIn returns the mark of the object in the annotations of a pod, and whether it is there.
func (c *Compiled) MarkIn(annotations map[string]string) (CarriedMark, bool) {
	value, marked := annotations[c.markOf()]
	if !marked {
		return CarriedMark{}, false
	}
	m := c.MarkNow()
	m.Value, m.Revision = value, revisionsIn(annotations[RevisionsAnnotation])[c.decision]
	return m, true
}

// MarkNow returns the mark that a pod would get from the object as it is.
func (c *Compiled) MarkNow() CarriedMark {
	return CarriedMark{Annotation: c.markOf(), Value: c.resourceVersion, Revision: c.revision, Cluster: c.Cluster(), Name: c.name}
}

// markFor returns the mark of an object named as in [meta.DecisionsAnnotation].
func markFor(decision string) string {
	if cluster, ok := strings.CutPrefix(decision, meta.ClusterDecision); ok {
		return meta.ClusterMark(cluster)
	}
	return meta.Mark(decision)
}

// isMark reports whether an annotation is the mark of an object.
func isMark(key string) bool {
	return strings.HasPrefix(key, meta.MarkPrefix) || strings.HasPrefix(key, meta.ClusterMarkPrefix) && !strings.HasPrefix(key, meta.ClusterSkipPrefix)
}
