// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"maps"
	"slices"
	"strings"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
)

// Recorded reports whether an annotation of a pod says what was, or must not be, applied
// to it.
func Recorded(key string) bool {
	return key == ExcludeAnnotation || key == MirrorAnnotation || key == DecisionsAnnotation || key == RevisionsAnnotation || IsMark(key) ||
		strings.HasPrefix(key, SkipPrefix) || strings.HasPrefix(key, ClusterSkipPrefix)
}

// A CarriedMark is the annotation of a pod that an object was applied to.
type CarriedMark struct {
	// Value is the resourceVersion of the object, unless another client has written it.
	Annotation, Value string
	// Revision is what the pod records in [RevisionsAnnotation]; empty if it does not.
	Revision string
	Cluster  bool
	// Name is that of the object. It may be cut as in [Mark] if the pod does not list the
	// object in [DecisionsAnnotation].
	Name string
}

// Title names the object in messages, given the pod's namespace.
func (m CarriedMark) Title(namespace string) string {
	if m.Cluster {
		return "ClusterPodDefault " + m.Name
	}
	return "PodDefault " + namespace + "/" + m.Name
}

// State describes the state of the object that the mark names.
func (m CarriedMark) State() string {
	if m.Revision == "" {
		return "resourceVersion " + m.Value
	}
	return "resourceVersion " + m.Value + ", revision " + revision.Short(m.Revision)
}

// Marks returns the marks of a pod, sorted by annotation.
func Marks(annotations map[string]string) []CarriedMark {
	var listed, revisions map[string]string // names and revisions by annotation; computed for the first mark
	var out []CarriedMark
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if !IsMark(key) {
			continue
		}
		if listed == nil {
			listed, revisions = map[string]string{}, map[string]string{}
			for decision := range strings.SplitSeq(annotations[DecisionsAnnotation], ",") {
				listed[MarkFor(decision)] = strings.TrimPrefix(decision, ClusterDecision)
			}
			for decision, revision := range RevisionsIn(annotations[RevisionsAnnotation]) {
				revisions[MarkFor(decision)] = revision
				listed[MarkFor(decision)] = strings.TrimPrefix(decision, ClusterDecision)
			}
		}
		m := CarriedMark{Annotation: key, Value: annotations[key], Revision: revisions[key], Cluster: strings.HasPrefix(key, ClusterMarkPrefix)}
		if m.Name = listed[key]; m.Name == "" {
			m.Name = strings.TrimPrefix(strings.TrimPrefix(key, MarkPrefix), ClusterMarkPrefix)
		}
		out = append(out, m)
	}
	return out
}

// MarkFor returns the mark of an object named as in [DecisionsAnnotation].
func MarkFor(decision string) string {
	if cluster, ok := strings.CutPrefix(decision, ClusterDecision); ok {
		return ClusterMark(cluster)
	}
	return Mark(decision)
}

// IsMark reports whether an annotation is the mark of an object.
func IsMark(key string) bool {
	return strings.HasPrefix(key, MarkPrefix) || strings.HasPrefix(key, ClusterMarkPrefix) && !strings.HasPrefix(key, ClusterSkipPrefix)
}
