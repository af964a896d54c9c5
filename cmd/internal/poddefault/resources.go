// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// LimitRangerAnnotation records what the LimitRanger plugin has set: limitRangerPrefix
// and, for example, "cpu, memory request for container a; cpu limit for init container
// b" (k8s.io/kubernetes, plugin/pkg/admission/limitranger). It runs before webhooks.
const (
	limitRangerPrefix = "LimitRanger plugin set: "
)

// A quantity is a request or limit that a PodDefault sets for containers.
type quantity struct {
	list, name string
	value      jsontext.Value
	parsed     resource.Quantity
}

// compileResources compiles limits first, because requests are compared with them.
func (c *Compiled) compileResources(wanted *corev1.ResourceRequirements) {
	if wanted == nil {
		return
	}
	for _, list := range []struct {
		name   string
		values corev1.ResourceList
	}{{"limits", wanted.Limits}, {"requests", wanted.Requests}} {
		for _, name := range slices.Sorted(maps.Keys(list.values)) {
			parsed := list.values[name]
			c.resources = append(c.resources, quantity{list.name, string(name), quote(parsed.String()), parsed})
		}
	}
	c.containerLists = appendList(c, c.containerLists, claimKind, wanted.Claims, "resources", "claims")
}

// addResources adds missing requests and limits. Values from a LimitRange count as
// missing, because they are only defaults. The first PodDefault wins.
func (m *merge) addResources(t *container, c *Compiled) {
	for _, wanted := range c.resources {
		t.bounds.did(workOfVisit)
		if m.exceeded(c, func() string { return placeOf(wanted.list+" of "+wanted.name, t) }) {
			return
		}
		tokens := []string{"resources", wanted.list, wanted.name}
		if t.value(tokens) != nil {
			continue
		}
		have, ok := t.quantity(wanted.list, wanted.name)
		if ok && !m.limitRanged(t, wanted.list, wanted.name) {
			continue
		}
		if ok && have.Cmp(wanted.parsed) == 0 {
			t.set(&heldValue{tokens: tokens, value: wanted.value, origin: c, there: true})
			continue
		}
		opposite := "requests"
		if wanted.list == opposite {
			opposite = "limits"
		}
		if other, ok := t.quantity(opposite, wanted.name); ok && !m.replacedBy(t, c, opposite, wanted.name) {
			if compared := wanted.parsed.Cmp(other); wanted.list == "requests" && compared > 0 || wanted.list == "limits" && compared < 0 {
				m.warn("%s: %s of %s of container %s left out: the request would be larger than the limit", c, wanted.list, wanted.name, t.name)
				continue
			}
		}
		t.set(&heldValue{tokens: tokens, value: wanted.value, origin: c})
	}
}

// warnOfSeveral warns if several containers of the pod now get a resource that cannot
// be shared. Init containers release theirs, unless they keep running.
func (m *merge) warnOfSeveral(c *Compiled) {
	for _, q := range c.resources {
		if q.list != "limits" || !meta.Extended(corev1.ResourceName(q.name)) {
			continue
		}
		var takers []string
		m.pickedFrom(c, func(t *container) {
			if v := t.value([]string{"resources", q.list, q.name}); v != nil && v.origin == c && (!t.init || t.native()) {
				takers = append(takers, t.name)
			}
		})
		if len(takers) > 1 {
			m.warn("%s: each of the containers %s gets its own %s; with containerSelector.first the first one alone does", c, strings.Join(takers, ", "), q.name)
		}
	}
}

// quantity returns the container's request or limit, its own or from an earlier
// PodDefault.
func (h *holder) quantity(list, name string) (q resource.Quantity, ok bool) {
	tokens := []string{"resources", list, name}
	raw, ok := h.lookup(tokens...)
	if set := h.value(tokens); set != nil {
		raw, ok = set.value, true
	}
	if !ok {
		return q, false
	}
	q, err := resource.ParseQuantity(string(text(raw)))
	return q, err == nil
}

// replacedBy reports whether c will override the quantity.
func (m *merge) replacedBy(t *container, c *Compiled, list, name string) bool {
	m.pod.bounds.did(len(c.resources) / 4)
	replaces := slices.ContainsFunc(c.resources, func(q quantity) bool { return q.list == list && q.name == name })
	return replaces && t.value([]string{"resources", list, name}) == nil && m.limitRanged(t, list, name)
}

// longestAnnotation limits the bytes of all annotations of a pod together
// (k8s.io/apimachinery, TotalAnnotationSizeLimitB): a longer value cannot be valid.
const longestAnnotation = 256 << 10

// limitRanged reports whether LimitRanger set the quantity.
func (m *merge) limitRanged(t *container, list, name string) bool {
	if m.limitRanges == nil {
		m.limitRanges = m.readLimitRanges()
	}
	if len(m.limitRanges) == 0 {
		return false
	}
	of := " container "
	if t.init {
		of = " init container "
	}
	return m.limitRanges[name+" "+strings.TrimSuffix(list, "s")+" for"+of+t.name]
}

// readLimitRanges parses LimitRanger's annotation into, for example, "cpu request for
// container a".
func (m *merge) readLimitRanges() map[string]bool {
	out := map[string]bool{}
	says, ok := strings.CutPrefix(m.pod.annotations.Get(meta.LimitRangerAnnotation), limitRangerPrefix)
	if !ok || len(says) > longestAnnotation {
		return out
	}
	m.pod.bounds.did(len(says))
	for sentence := range strings.SplitSeq(says, ";") {
		names, of, found := strings.Cut(strings.TrimSpace(sentence), " for ")
		space := strings.LastIndexByte(names, ' ')
		if !found || space < 0 {
			continue
		}
		for name := range strings.SplitSeq(names[:space], ", ") {
			if m.pod.bounds.did(workOfVisit); m.pod.bounds.spent() {
				return out
			}
			out[name+names[space:]+" for "+of] = true
		}
	}
	return out
}
