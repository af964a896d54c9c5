// SPDX-License-Identifier: Apache-2.0

package specification

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// # What a pod carries afterwards

// mark is the annotation of pods that the object was applied to, and skip that of pods for which it was skipped.
func (o *object) mark() string { return o.annotation("") }
func (o *object) skip() string { return o.annotation("skipped-") }

func (o *object) annotation(kind string) string {
	prefix, name := "poddefault.admission.kubeflow.org/", o.meta.Name
	switch {
	case o.cluster:
		prefix, kind = "sallyport.io/", "clusterpoddefault-"+kind
	case kind == "":
		kind = "poddefault-"
	}
	if room := 63 - len(kind); len(name) > room {
		name = fmt.Sprintf("%s-%x", name[:room-9], sha256.Sum256([]byte(name)))[:room]
	}
	return prefix + kind + name
}

// carry writes the annotations about the selected objects; those of the fold were applied. Objects that only the labels with which
// the pod is stored select are listed too: it was decided that they do not apply.
func (d decision) carry(f *fold, selected, byStored []*object) {
	annotations, names, got := map[string]string{}, []string{}, d.recordedRevisions()
	maps.Copy(annotations, f.pod.Annotations)
	for _, o := range byStored {
		if !slices.Contains(selected, o) {
			names = append(names, o.String())
		}
	}
	for _, o := range selected {
		names = append(names, o.String())
		if reason := f.skipped[o]; reason != "" {
			annotations[o.skip()] = fmt.Sprintf("generation %d: %s", o.meta.Generation, reason)
		}
		if !slices.Contains(f.objects, o) || f.passed[o] {
			continue
		}
		if !d.marked(o) {
			annotations[o.mark()] = o.meta.ResourceVersion
		}
		if !d.marked(o) || o.mandatory() { // otherwise the revision stays with the mark
			got[o.String()] = o.revision
		}
	}
	slices.Sort(names)
	listed := strings.Split(annotations["sallyport.io/poddefaults"], ",")
	if slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(listed, name) }) {
		annotations["sallyport.io/poddefaults"] = strings.Join(names, ",")
	}
	var entries []string
	for _, name := range slices.Sorted(maps.Keys(got)) {
		entries = append(entries, name+"@"+got[name])
	}
	if len(entries) > 0 {
		annotations["sallyport.io/poddefault-revisions"] = strings.Join(entries, ",")
	}
	f.pod.Annotations = annotations
}

func (d decision) recordedRevisions() map[string]string {
	result := map[string]string{}
	for entry := range strings.SplitSeq(d.Pod.Annotations["sallyport.io/poddefault-revisions"], ",") {
		if name, revision, ok := strings.Cut(entry, "@"); ok {
			result[name] = revision
		}
	}
	return result
}

// # What came with the request

// sent returns the labels and annotations in managedFields, as f:labels/NAME and f:annotations/NAME. Without managedFields
// all came with the request.
func sent(pod *corev1.Pod) map[string]bool {
	result := map[string]bool{}
	for _, m := range pod.ManagedFields {
		var set struct {
			Metadata map[string]map[string]any `json:"f:metadata"`
		}
		if m.FieldsV1 == nil || json.Unmarshal(m.FieldsV1.GetRawBytes(), &set) != nil {
			continue
		}
		for kind, names := range set.Metadata {
			for name := range names {
				result[kind+"/"+strings.TrimPrefix(name, "f:")] = true
			}
		}
	}
	for kind, set := range map[string]map[string]string{"f:labels/": pod.Labels, "f:annotations/": pod.Annotations} {
		for name := range set {
			result[kind+name] = result[kind+name] || len(pod.ManagedFields) == 0
		}
	}
	return result
}

func (d decision) marked(o *object) bool {
	_, marked := d.Pod.Annotations[o.mark()]
	return marked
}

// applied reports whether an earlier call for this request has applied the object.
func (d decision) applied(o *object) bool {
	return d.marked(o) && !d.sent["f:annotations/"+o.mark()]
}

// sentLabels are the labels that the pod was sent with, without those that an earlier call has added.
func (d decision) sentLabels(objects []*object) map[string]string {
	result := map[string]string{}
	for name, value := range d.Pod.Labels {
		added := slices.ContainsFunc(objects, func(o *object) bool { return d.marked(o) && o.Labels[name] != "" })
		if d.sent["f:labels/"+name] || !added {
			result[name] = value
		}
	}
	return result
}

// recordedSkip reports whether this generation was skipped before.
func (d decision) recordedSkip(o *object) bool {
	recorded := strings.HasPrefix(d.Pod.Annotations[o.skip()], fmt.Sprintf("generation %d: ", o.meta.Generation))
	return recorded && (!o.mandatory() || !d.sent["f:annotations/"+o.skip()])
}

// # Pods that are sent again

// older reports whether another revision of the object injected the pod. A mark that the pod was sent with decides nothing
// about mandatory objects.
func (d decision) older(o *object) bool {
	if !d.marked(o) || o.mandatory() && !d.applied(o) {
		return false
	}
	if recorded := d.recordedRevisions()[o.String()]; recorded != "" {
		return recorded != o.revision
	}
	return d.Pod.Annotations[o.mark()] != o.meta.ResourceVersion
}
