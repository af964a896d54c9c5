// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"strings"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// LimitRangerPrefix begins the annotation in which the LimitRanger plugin says what it has set:
// after it comes, for example, "cpu, memory request for container a; cpu limit for init container
// b" (k8s.io/kubernetes, plugin/pkg/admission/limitranger). It runs before webhooks.
const LimitRangerPrefix = "LimitRanger plugin set: "

// LimitRanged reports whether LimitRanger set the quantity.
func (p *Pod) LimitRanged(t *Container, list, name string) bool {
	if p.limitRanges == nil {
		p.limitRanges = p.readLimitRanges()
	}
	if len(p.limitRanges) == 0 {
		return false
	}
	of := " container "
	if t.Init {
		of = " init container "
	}
	return p.limitRanges[name+" "+strings.TrimSuffix(list, "s")+" for"+of+t.Name]
}

// readLimitRanges parses LimitRanger's annotation into, for example, "cpu request for
// container a".
func (p *Pod) readLimitRanges() map[string]bool {
	out := map[string]bool{}
	says, ok := strings.CutPrefix(p.Annotations.Get(meta.LimitRangerAnnotation), LimitRangerPrefix)
	if !ok || len(says) > meta.MaxAnnotations {
		return out
	}
	p.Bounds.Did(len(says))
	for sentence := range strings.SplitSeq(says, ";") {
		names, of, found := strings.Cut(strings.TrimSpace(sentence), " for ")
		space := strings.LastIndexByte(names, ' ')
		if !found || space < 0 {
			continue
		}
		for name := range strings.SplitSeq(names[:space], ", ") {
			if p.Bounds.Did(meta.WorkOfVisit); p.Bounds.Spent() {
				return out
			}
			out[name+names[space:]+" for "+of] = true
		}
	}
	return out
}
