// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"strings"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/managedfields"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// RevisionsAnnotation records which revision of each applied object a pod got:
// NAME@REVISION for PodDefaults and cluster/NAME@REVISION for ClusterPodDefaults, sorted by
// name and separated by commas. Anyone can write it, so what came with a request decides nothing
// that the user who sent it could not decide anyway.
const RevisionsAnnotation = "sallyport.io/poddefault-revisions"

// MaxAnnotations limits the bytes of all annotations of a pod together
// (k8s.io/apimachinery, TotalAnnotationSizeLimitB): a longer value cannot be valid.
const MaxAnnotations = 256 << 10

// MaxRevisionsBytes bounds the annotation. All annotations of a pod may have 256 KiB
// together; beside the marks of 500 objects with the longest names, and the list of them,
// this is left. What has no room is not recorded, and its mark alone tells the version.
const MaxRevisionsBytes = 64 << 10

// History is what the annotations of a pod say about earlier decisions.
type History struct {
	Revisions map[string]string // by [plan.Plan.Decision]
	// sent has the annotations of ours, and sentLabels the labels, that came with the
	// request, or at least may have: not those that an earlier call for the request has
	// added. Nil if any may have come with it.
	sent, sentLabels map[string]bool
	// Stored is set for a pod that is no request: its annotations are all there is.
	Stored bool
}

// Past reads the history of a pod. Only pods that carry annotations of ours need it.
func (md *Metadata) Past(b *Budget) *History {
	if md.History != nil {
		return md.History
	}
	h := &History{}
	md.History = h
	recorded := md.Annotations.Get(RevisionsAnnotation)
	b.Scans(len(recorded))
	h.Revisions = RevisionsIn(recorded)
	md.Complete()
	fields, _ := rawjson.Lookup(md.Raw, "managedFields")
	b.Scans(len(md.Raw))
	sent, sentLabels := map[string]bool{}, map[string]bool{}
	if managedfields.Sent(fields, func(key string) {
		if b.Did(1); Recorded(key) {
			sent[key] = true
		}
	}, func(key string) {
		b.Did(1)
		sentLabels[key] = true
	}) {
		h.sent, h.sentLabels = sent, sentLabels
	}
	return h
}

// CameLabel is came for a label.
func (h *History) CameLabel(key string) bool {
	return !h.Stored && (h.sentLabels == nil || h.sentLabels[key])
}

// Came reports whether an annotation came with the request, as far as anybody can say.
func (h *History) Came(annotation string) bool {
	return !h.Stored && (h.sent == nil || h.sent[annotation])
}

// RevisionsIn parses a value of [RevisionsAnnotation]. What it does not understand, it
// leaves out.
func RevisionsIn(value string) map[string]string {
	if value == "" {
		return nil
	}
	out := map[string]string{}
	for entry := range strings.SplitSeq(value, ",") {
		if name, of, ok := strings.Cut(entry, "@"); ok && plain(name) && revision.IsName(of) {
			out[name] = of
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
