// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/cmd/internal/podview/managedfields"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// RevisionsAnnotation records which revision of each applied object a pod got:
// NAME@REVISION for PodDefaults and cluster/NAME@REVISION for ClusterPodDefaults, sorted by
// name and separated by commas. Anyone can write it, so what came with a request decides nothing
// that the user who sent it could not decide anyway.
const RevisionsAnnotation = "sallyport.io/poddefault-revisions"

// maxRevisionsBytes bounds the annotation. All annotations of a pod may have 256 KiB
// together; beside the marks of 500 objects with the longest names, and the list of them,
// this is left. What has no room is not recorded, and its mark alone tells the version.
const maxRevisionsBytes = 64 << 10

// history is what the annotations of a pod say about earlier decisions.
type history struct {
	revisions map[string]string // by [Compiled.Decision]
	// sent has the annotations of ours, and sentLabels the labels, that came with the
	// request, or at least may have: not those that an earlier call for the request has
	// added. Nil if any may have come with it.
	sent, sentLabels map[string]bool
	// stored is set for a pod that is no request: its annotations are all there is.
	stored bool
}

// past reads the history of a pod. Only pods that carry annotations of ours need it.
func (md *metadata) past(b *bounds) *history {
	if md.history != nil {
		return md.history
	}
	h := &history{}
	md.history = h
	recorded := md.annotations.Get(RevisionsAnnotation)
	b.scans(len(recorded))
	h.revisions = revisionsIn(recorded)
	md.complete()
	fields, _ := rawjson.Lookup(md.raw, "managedFields")
	b.scans(len(md.raw))
	sent, sentLabels := map[string]bool{}, map[string]bool{}
	if managedfields.Sent(fields, func(key string) {
		if b.did(1); Recorded(key) {
			sent[key] = true
		}
	}, func(key string) {
		b.did(1)
		sentLabels[key] = true
	}) {
		h.sent, h.sentLabels = sent, sentLabels
	}
	return h
}

// cameLabel is came for a label.
func (h *history) cameLabel(key string) bool {
	return !h.stored && (h.sentLabels == nil || h.sentLabels[key])
}

// came reports whether an annotation came with the request, as far as anybody can say.
func (h *history) came(annotation string) bool {
	return !h.stored && (h.sent == nil || h.sent[annotation])
}

// kept returns what an earlier call for the same request has recorded about an object, and
// whether one has applied it. A mark that came with the request is none of an earlier call,
// and then neither is the recorded revision.
func kept(md *metadata, c *Compiled, b *bounds) (resourceVersion, revision string, applied bool) {
	mark := c.unpack().mark
	resourceVersion, marked := md.annotations.Lookup(mark)
	if !marked {
		return "", "", false
	}
	past := md.past(b)
	if past.came(mark) {
		return "", "", false
	}
	return resourceVersion, past.revisions[c.decision], true
}

// revisionsIn parses a value of [RevisionsAnnotation]. What it does not understand, it
// leaves out.
func revisionsIn(value string) map[string]string {
	if value == "" {
		return nil
	}
	out := map[string]string{}
	for entry := range strings.SplitSeq(value, ",") {
		if name, revision, ok := strings.Cut(entry, "@"); ok && plain(name) && isRevision(revision) {
			out[name] = revision
		}
	}
	return out
}

// plain reports whether a name has only characters of names of objects, which need no
// escapes in JSON.
func plain(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != '/'
	})
}

// recorded returns the value of [RevisionsAnnotation] for the finished pod, as JSON, or nil
// if the pod has it already or there is nothing to record. The record of an object stays
// with its mark: a pod that is sent again with a mark keeps what an earlier revision gave
// it. Of an object that does not allow exclusion, a wrong record is corrected.
func (m *merge) recorded() jsontext.Value {
	present := m.pod.annotations.Get(RevisionsAnnotation)
	var known map[string]string
	if present != "" {
		known = m.pod.past(&m.pod.bounds).revisions
	}
	changed := false
	size := len(`""`)
	entries := make([]entry, 0, len(m.applied)+len(known))
	add := func(decision, revision string) {
		if length := len(decision) + len(revision) + len("@,"); size+length <= maxRevisionsBytes {
			size += length
			entries = append(entries, entry{decision, revision})
		}
	}
	var own map[string]bool
	for _, c := range m.applied {
		revision := c.revision
		if c.resourceVersion == "" || isIn(m.passed, c) { // in no cluster, and then its mark is empty too; or not applied
			continue
		}
		switch before, ok := known[c.decision]; {
		case m.pod.annotations.Has(c.mark) && (c.allowExclude || !ok):
			revision = before
		case !ok || before != revision:
			changed = true
		}
		if revision == "" {
			continue
		}
		if known != nil {
			if own == nil {
				own = make(map[string]bool, len(m.applied))
			}
			own[c.decision] = true
		}
		add(c.decision, revision)
	}
	if !changed || len(entries) == 0 {
		return nil
	}
	others := make([]string, 0, len(known))
	for decision := range known {
		if !own[decision] {
			others = append(others, decision)
		}
	}
	slices.Sort(others)
	for _, decision := range others {
		add(decision, known[decision])
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	out := append(make([]byte, 0, size), '"')
	for i, e := range entries {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, e.key...), '@'), e.value...)
	}
	out = append(out, '"')
	if string(out[1:len(out)-1]) == present {
		return nil
	}
	return out
}
