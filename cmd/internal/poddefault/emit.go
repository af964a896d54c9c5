// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// An emitter turns a merge without conflicts into a patch and records the origin of
// each change. It edits each place directly, using the content already read.
type emitter struct {
	patch   jsonpatch.Patch
	explain bool // record origins
	origins []admission.Origin
	err     error
}

// response returns the answer to a pod without conflicts, with origins if explain is
// set. It denies malformed pods, in which a list or map has another type.
func (m *merge) response(explain bool) *admission.Response {
	e := emitter{patch: make(jsonpatch.Patch, 0, len(m.applied)+len(m.entries)+12), explain: explain}
	p := m.pod
	m.finish()
	e.metadata(m)
	if token := p.spec.value([]string{automountField}); token != nil {
		e.automount(p, token)
	}
	e.list(&p.volumes)
	e.tolerations(&p.tolerations, m.seconds)
	e.list(&p.pullSecrets)
	e.holder(&p.spec)
	// Before any edits inside their elements: a list may be sent as a whole, with the
	// original bytes of its elements.
	initSlots, slots := m.arrange(&p.initContainers), m.arrange(&p.containers)
	e.containers(&p.initContainers, initSlots)
	e.containers(&p.containers, slots)
	for _, containers := range [][]container{p.init, p.app} {
		for i := range containers {
			c := &containers[i]
			e.list(&c.env)
			e.list(&c.envFrom)
			e.list(&c.volumeMounts)
			e.holder(&c.holder)
		}
	}
	if initSlots != nil {
		e.insert(&p.initContainers, initSlots)
	}
	if slots != nil {
		e.insert(&p.containers, slots)
	}

	if e.err != nil {
		return admission.BadRequest("not a pod: %v", e.err)
	}
	size := 0
	for i := range e.patch {
		size += len(e.patch[i].Path) + len(e.patch[i].Value)
	}
	if size > maxPod {
		p.bounds.exceed(fmt.Sprintf("the patch would have more than %d MiB", maxPod>>20))
	}
	resp := admission.Patched(e.patch).Warn(m.told()...)
	resp.Origins = e.origins
	resp.AuditAnnotations = m.auditAnnotations()
	return resp
}

// containers emits replaced containers and, unless slots place them, additional ones.
func (e *emitter) containers(l *list, slots []slot) {
	if slots == nil {
		e.list(l)
		return
	}
	last := *l
	last.added = nil
	e.list(&last)
}

// holder emits the fields of the pod's spec or of a container that are read only if a
// PodDefault sets them.
func (e *emitter) holder(h *holder) {
	if len(h.lists) == 0 && len(h.values) == 0 && h.terms == nil || h.raw == nil {
		return
	}
	b := jsonpatch.NewBuilderAt(h.path, h.raw)
	for _, v := range h.values {
		if v.there {
			continue
		}
		b.Set(json.RawMessage(v.value), v.tokens...)
		e.originBelow(h.path, v.origin, v.tokens...)
		for _, tokens := range v.removes {
			if _, there := h.lookup(tokens...); there {
				b.Remove(tokens...)
				e.originBelow(h.path, v.origin, tokens...)
			}
		}
	}
	for _, l := range h.lists {
		length := l.length()
		for _, r := range l.replaced {
			if r.origin == nil {
				continue
			}
			index := strconv.Itoa(r.index)
			b.Set(json.RawMessage(r.value), append(slices.Clone(l.tokens), index)...)
			e.originBelow(h.path, r.origin, append(slices.Clone(l.tokens), index)...)
		}
		values := make([]json.RawMessage, len(l.added))
		for i, added := range l.added {
			values[i] = json.RawMessage(added.value)
			e.originBelow(h.path, added.origin, append(slices.Clone(l.tokens), strconv.Itoa(length+i))...)
		}
		b.Append(l.tokens, values...)
	}
	if h.terms != nil {
		e.nodeTerms(b, h)
	}
	e.append(b)
}

// nodeTerms emits changed and new required node terms.
func (e *emitter) nodeTerms(b *jsonpatch.Builder, h *holder) {
	end := 0
	for _, term := range h.terms.terms {
		if term.index >= 0 {
			end++
		}
	}
	for _, term := range h.terms.terms {
		if term.origin == nil {
			continue
		}
		index := term.index
		if index < 0 {
			index = end
			end++
			b.Append(nodeTermTokens, json.RawMessage(term.value))
		} else {
			b.Set(json.RawMessage(term.value), append(slices.Clone(nodeTermTokens), strconv.Itoa(index))...)
		}
		e.originBelow(h.path, term.origin, append(slices.Clone(nodeTermTokens), strconv.Itoa(index))...)
	}
}

// auditAnnotations name the considered objects and their generations.
func (m *merge) auditAnnotations() map[string]string {
	var out map[string]string
	add := func(key string, objects []*Compiled) {
		if len(objects) > 0 {
			if out == nil {
				out = map[string]string{}
			}
			out[key] = generations(objects)
		}
	}
	applied := m.applied
	if len(m.passed) > 0 {
		applied = slices.DeleteFunc(slices.Clone(applied), func(c *Compiled) bool { return isIn(m.passed, c) })
	}
	add("applied", applied)
	add("invalid", m.invalid)
	add("audited", m.audited)
	add("skipped", skippedObjects(m.skipped))
	return out
}

// The places of annotations that most pods get.
var (
	decisionsPath = annotationsPath + jsonpatch.Pointer(meta.DecisionsAnnotation)
	revisionsPath = annotationsPath + jsonpatch.Pointer(RevisionsAnnotation)
)

// metadata emits labels, annotations, marks and decisions.
func (e *emitter) metadata(m *merge) {
	p := m.pod
	if p.metadata.raw == nil {
		e.set("/metadata", []byte("{}"), nil)
	}
	labels := jsonpatch.NewBuilderAt("/metadata/labels", p.rawLabels)
	annotations := jsonpatch.NewBuilderAt("/metadata/annotations", p.rawAnnotations)
	annotate := func(key, value, source string) {
		if present, ok := p.annotations.Lookup(key); !ok || present != value {
			annotations.Set(quote(value), key)
			e.origin(source, "metadata", "annotations", key)
		}
	}
	for _, added := range m.entries {
		if added.field == annotationsField {
			annotate(added.entry.key, added.entry.value, added.origin.title)
			continue
		}
		labels.Set(quote(added.entry.value), added.entry.key)
		e.origin(added.origin.title, "metadata", "labels", added.entry.key)
	}
	e.append(labels)
	// Most pods have annotations and get only new ones, which need no search.
	onlyNew := p.rawAnnotations.Kind() == '{' && len(m.annotations)+len(m.skipped) == 0 &&
		!p.annotations.Has(meta.DecisionsAnnotation) && !p.annotations.Has(RevisionsAnnotation)
	for _, c := range m.applied {
		switch {
		case isIn(m.passed, c):
		case p.annotations.Has(c.mark):
			// It stays: the resourceVersion also changes with the object's status, and a
			// pod that is sent again must not change with it.
		case onlyNew:
			e.patch = append(e.patch, c.marks)
			e.origin(c.title, "metadata", "annotations", c.mark)
		default:
			annotate(c.mark, c.resourceVersion, c.title)
		}
	}
	if revisions := m.recorded(); revisions != nil {
		if onlyNew {
			e.set(revisionsPath, revisions, nil)
		} else {
			annotations.Set(json.RawMessage(revisions), RevisionsAnnotation)
		}
		e.origin("sallyport", "metadata", "annotations", RevisionsAnnotation)
	}
	listed := p.annotations.Get(meta.DecisionsAnnotation)
	for _, s := range m.skipped {
		if s.conflict != nil { // otherwise an earlier call has recorded it
			annotate(s.object.skipMark(), s.object.skipValue(s.reason), s.object.title)
		}
	}
	value := decisions(listed, m.applied, m.invalid, m.audited, skippedObjects(m.skipped), m.outside)
	if onlyNew {
		e.set(decisionsPath, quote(value), nil)
		e.origin("sallyport", "metadata", "annotations", meta.DecisionsAnnotation)
		return
	}
	annotate(meta.DecisionsAnnotation, value, "sallyport")
	e.append(annotations)
}

// list emits additions to and removals from a list.
func (e *emitter) list(l *list) {
	if len(l.added) == 0 && len(l.removed) == 0 && len(l.replaced) == 0 {
		return
	}
	path := l.path()
	b := jsonpatch.NewBuilderAt(path, l.raw)
	e.replace(b, l, path)
	for _, r := range l.removed {
		b.Remove(strconv.Itoa(r.index))
		e.originAt(path, r.index, r.origin)
	}
	e.appendAdded(b, l, path)
	e.append(b)
}

// tolerations emits a list whose elements may change.
func (e *emitter) tolerations(l *list, seconds []setSeconds) {
	if len(l.added) == 0 && len(l.replaced) == 0 && len(seconds) == 0 {
		return
	}
	path := l.path()
	b := jsonpatch.NewBuilderAt(path, l.raw)
	e.replace(b, l, path)
	for _, s := range seconds {
		if s.there {
			continue
		}
		index := strconv.Itoa(s.index)
		if s.value == nil {
			b.Remove(index, "tolerationSeconds")
		} else {
			b.Set(json.RawMessage(s.value), index, "tolerationSeconds")
		}
		e.origin(s.origin.title, "spec", "tolerations", index, "tolerationSeconds")
	}
	e.appendAdded(b, l, path)
	e.append(b)
}

func (e *emitter) replace(b *jsonpatch.Builder, l *list, path string) {
	for _, r := range l.replaced {
		if r.origin == nil {
			continue
		}
		b.Set(json.RawMessage(r.value), strconv.Itoa(r.index))
		e.originAt(path, r.index, r.origin)
	}
}

func (e *emitter) appendAdded(b *jsonpatch.Builder, l *list, path string) {
	if len(l.added) == 0 {
		return
	}
	length := l.length() - len(l.removed)
	values := make([]json.RawMessage, len(l.added))
	for i, added := range l.added {
		values[i] = json.RawMessage(added.value)
		e.originAt(path, length+i, added.origin)
	}
	b.Append(nil, values...)
}

// set sets a member that is missing or has another value. Without an origin, the value
// is a container for others.
func (e *emitter) set(path string, value []byte, origin *Compiled) {
	e.patch = append(e.patch, jsonpatch.Operation{Op: jsonpatch.Add, Path: path, Value: value})
	if origin != nil && e.explain {
		e.origins = append(e.origins, admission.Origin{Path: path, Source: origin.title})
	}
}

func (e *emitter) append(b *jsonpatch.Builder) {
	if e.err == nil {
		e.patch, e.err = b.AppendPatch(e.patch)
	}
}

func (e *emitter) origin(source string, tokens ...string) {
	if e.explain {
		e.origins = append(e.origins, admission.Origin{Path: jsonpatch.Pointer(tokens...), Source: source})
	}
}

// originBelow records the origin of the value at the tokens below a holder.
func (e *emitter) originBelow(path string, origin *Compiled, tokens ...string) {
	if e.explain {
		e.origins = append(e.origins, admission.Origin{Path: path + jsonpatch.Pointer(tokens...), Source: origin.title})
	}
}

// originAt records the origin of a list element.
func (e *emitter) originAt(list string, index int, origin *Compiled) {
	if e.explain {
		e.origins = append(e.origins, admission.Origin{Path: list + "/" + strconv.Itoa(index), Source: origin.title})
	}
}

func quote(s string) []byte {
	return rawjson.AppendString(make([]byte, 0, len(s)+2), s)
}

func names(objects []*Compiled) string {
	if len(objects) == 1 {
		return objects[0].decision
	}
	out := make([]string, len(objects))
	for i, c := range objects {
		out[i] = c.decision
	}
	return few(out, ",", 0)
}

// generations returns, for example, "a@1,cluster/b@7".
func generations(objects []*Compiled) string {
	size := 0
	for _, c := range objects {
		size += len(c.decision) + len("@12345,")
	}
	out := make([]byte, 0, size)
	for i, c := range objects {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendInt(append(append(out, c.decision...), '@'), c.generation, 10)
	}
	return string(out)
}

func skippedObjects(skipped []skip) []*Compiled {
	var out []*Compiled
	for _, s := range skipped {
		out = append(out, s.object)
	}
	return out
}
