// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podstate"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
)

// Values of setEntry.field.
const (
	labelsField      = "labels"
	annotationsField = "annotations"
)

type setEntry struct {
	field  string
	entry  podmeta.Entry
	origin *plan.Plan
}

// metadata are the pod's labels and annotations with those added so far.
type metadata struct {
	pod                 *podstate.Pod
	namespace           string
	labels, annotations map[string]int // positions in entries by key
	entries             []setEntry     // added labels and annotations, in order
}

// setLabel adds a label. An existing label is never replaced, because Services, policies and
// ClusterPodDefaults select by it.
func (ad *adder) setLabel(wanted podmeta.Entry, c *plan.Plan) {
	value, there, opponent := ad.label(wanted.Key)
	if there {
		if value != wanted.Value {
			ad.resolveFixed(c, opponent, "label "+wanted.Key, another(opponent), nil)
		}
		return
	}
	if ad.labels == nil {
		ad.labels = map[string]int{}
	}
	ad.labels[wanted.Key] = len(ad.entries)
	ad.Pod.Bounds.Did(workOfRival)
	ad.Pod.Bounds.Grow(len(wanted.Key) + len(wanted.Value))
	ad.entries = append(ad.entries, setEntry{labelsField, wanted, c})
}

// label returns a label that the pod has so far, and the object that added it.
func (md *metadata) label(key string) (value string, there bool, by *plan.Plan) {
	if i, ok := md.labels[key]; ok {
		return md.entries[i].entry.Value, true, md.entries[i].origin
	}
	value, there = md.pod.Metadata.Labels.Lookup(key)
	return value, there, nil
}

func (ad *adder) setAnnotation(wanted podmeta.Entry, c *plan.Plan) {
	added := setEntry{annotationsField, wanted, c}
	own, has := ad.Pod.Metadata.Annotations.Lookup(wanted.Key)
	since := func() bool {
		return ad.replacedSince(c, place{plan.AnnotationsMap, wanted.Key}, nil, nil, func(later jsontext.Value) bool { return has && string(later) == own })
	}
	if i, ok := ad.annotations[wanted.Key]; ok {
		earlier := &ad.entries[i]
		if earlier.entry.Value == wanted.Value || has && own == earlier.entry.Value && ad.tolerates(c, c.Policy, "annotation "+wanted.Key) {
			return
		}
		if ad.resolve(c, earlier.origin, c.Policy, "annotation "+wanted.Key, another(earlier.origin), since) {
			ad.Pod.Bounds.Replaces(len(earlier.entry.Value), len(wanted.Value))
			*earlier = added
		}
		return
	}
	if has && (own == wanted.Value || !ad.resolve(c, nil, c.Policy, "annotation "+wanted.Key, another(nil), since)) {
		return
	}
	if ad.annotations == nil {
		ad.annotations = map[string]int{}
	}
	ad.annotations[wanted.Key] = len(ad.entries)
	ad.Pod.Bounds.Grow(len(wanted.Key) + len(wanted.Value))
	ad.entries = append(ad.entries, added)
}

// selecting returns the last object that adds a label by which another one selects pods.
func (md *metadata) selecting(c *plan.Plan) *plan.Plan {
	if via := md.selectedVia(c); len(via) > 0 {
		return via[len(via)-1].By
	}
	return nil
}
