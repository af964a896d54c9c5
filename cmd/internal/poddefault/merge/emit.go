// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podstate"
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

// Response returns the answer to a pod without conflicts, with origins if explain is
// set. It denies malformed pods, in which a list or map has another type.
func (m *Merge) Response(explain bool) *admission.Response {
	e := emitter{patch: make(jsonpatch.Patch, 0, len(m.Applied)+len(m.entries)+12), explain: explain}
	p := m.Pod
	m.finish()
	e.metadata(m)
	if token := p.Spec.Value([]string{plan.AutomountField}); token != nil {
		e.automount(p, token)
	}
	e.list(&p.Volumes)
	e.tolerations(&p.Tolerations, m.seconds)
	e.list(&p.PullSecrets)
	e.holder(&p.Spec)
	// Before any edits inside their elements: a list may be sent as a whole, with the
	// original bytes of its elements.
	initSlots, slots := m.arrange(&p.InitContainers), m.arrange(&p.Containers)
	e.containers(&p.InitContainers, initSlots)
	e.containers(&p.Containers, slots)
	for _, containers := range [][]podstate.Container{p.Init, p.App} {
		for i := range containers {
			c := &containers[i]
			e.list(&c.Env)
			e.list(&c.EnvFrom)
			e.list(&c.VolumeMounts)
			e.holder(&c.Holder)
		}
	}
	if initSlots != nil {
		e.insert(&p.InitContainers, initSlots)
	}
	if slots != nil {
		e.insert(&p.Containers, slots)
	}

	if e.err != nil {
		return admission.BadRequest("not a pod: %v", e.err)
	}
	size := 0
	for i := range e.patch {
		size += len(e.patch[i].Path) + len(e.patch[i].Value)
	}
	if size > meta.MaxPod {
		p.Bounds.Exceed(fmt.Sprintf("the patch would have more than %d MiB", meta.MaxPod>>20))
	}
	resp := admission.Patched(e.patch).Warn(m.Told()...)
	resp.Origins = e.origins
	resp.AuditAnnotations = m.auditAnnotations()
	return resp
}

// containers emits replaced containers and, unless slots place them, additional ones.
func (e *emitter) containers(l *podstate.List, slots []slot) {
	if slots == nil {
		e.list(l)
		return
	}
	last := *l
	last.Added = nil
	e.list(&last)
}

// holder emits the fields of the pod's spec or of a container that are read only if a
// PodDefault sets them.
func (e *emitter) holder(h *podstate.Holder) {
	if len(h.Lists) == 0 && len(h.Values) == 0 && h.Terms == nil || h.Raw == nil {
		return
	}
	b := jsonpatch.NewBuilderAt(h.Path, h.Raw)
	for _, v := range h.Values {
		if v.There {
			continue
		}
		b.Set(json.RawMessage(v.Value), v.Tokens...)
		e.originBelow(h.Path, v.Origin, v.Tokens...)
		for _, tokens := range v.Removes {
			if _, there := h.Lookup(tokens...); there {
				b.Remove(tokens...)
				e.originBelow(h.Path, v.Origin, tokens...)
			}
		}
	}
	for _, l := range h.Lists {
		length := l.Length()
		for _, r := range l.Replaced {
			if r.Origin == nil {
				continue
			}
			index := strconv.Itoa(r.Index)
			b.Set(json.RawMessage(r.Value), append(slices.Clone(l.Tokens), index)...)
			e.originBelow(h.Path, r.Origin, append(slices.Clone(l.Tokens), index)...)
		}
		values := make([]json.RawMessage, len(l.Added))
		for i, added := range l.Added {
			values[i] = json.RawMessage(added.Value)
			e.originBelow(h.Path, added.Origin, append(slices.Clone(l.Tokens), strconv.Itoa(length+i))...)
		}
		b.Append(l.Tokens, values...)
	}
	if h.Terms != nil {
		e.nodeTerms(b, h)
	}
	e.append(b)
}

// nodeTerms emits changed and new required node terms.
func (e *emitter) nodeTerms(b *jsonpatch.Builder, h *podstate.Holder) {
	end := 0
	for _, term := range h.Terms.Terms {
		if term.Index >= 0 {
			end++
		}
	}
	for _, term := range h.Terms.Terms {
		if term.Origin == nil {
			continue
		}
		index := term.Index
		if index < 0 {
			index = end
			end++
			b.Append(podstate.NodeTermTokens, json.RawMessage(term.Value))
		} else {
			b.Set(json.RawMessage(term.Value), append(slices.Clone(podstate.NodeTermTokens), strconv.Itoa(index))...)
		}
		e.originBelow(h.Path, term.Origin, append(slices.Clone(podstate.NodeTermTokens), strconv.Itoa(index))...)
	}
}

// auditAnnotations name the considered objects and their generations.
func (m *Merge) auditAnnotations() map[string]string {
	var out map[string]string
	add := func(key string, objects []*plan.Plan) {
		if len(objects) > 0 {
			if out == nil {
				out = map[string]string{}
			}
			out[key] = plan.Generations(objects)
		}
	}
	applied := m.Applied
	if len(m.passed) > 0 {
		applied = slices.DeleteFunc(slices.Clone(applied), func(c *plan.Plan) bool { return plan.IsIn(m.passed, c) })
	}
	add("applied", applied)
	add("invalid", m.invalid)
	add("audited", m.Audited)
	add("skipped", skippedObjects(m.skipped))
	return out
}

// The places of annotations that most pods get.
var (
	decisionsPath = plan.AnnotationsPath + jsonpatch.Pointer(meta.DecisionsAnnotation)
	revisionsPath = plan.AnnotationsPath + jsonpatch.Pointer(meta.RevisionsAnnotation)
)

// metadata emits labels, annotations, marks and decisions.
func (e *emitter) metadata(m *Merge) {
	p := m.Pod
	if p.Metadata.Raw == nil {
		e.set("/metadata", []byte("{}"), nil)
	}
	labels := jsonpatch.NewBuilderAt("/metadata/labels", p.RawLabels)
	annotations := jsonpatch.NewBuilderAt("/metadata/annotations", p.RawAnnotations)
	annotate := func(key, value, source string) {
		if present, ok := p.Annotations.Lookup(key); !ok || present != value {
			annotations.Set(meta.Quote(value), key)
			e.origin(source, "metadata", "annotations", key)
		}
	}
	for _, added := range m.entries {
		if added.field == annotationsField {
			annotate(added.entry.Key, added.entry.Value, added.origin.String())
			continue
		}
		labels.Set(meta.Quote(added.entry.Value), added.entry.Key)
		e.origin(added.origin.String(), "metadata", "labels", added.entry.Key)
	}
	e.append(labels)
	// Most pods have annotations and get only new ones, which need no search.
	onlyNew := p.RawAnnotations.Kind() == '{' && len(m.annotations)+len(m.skipped) == 0 &&
		!p.Annotations.Has(meta.DecisionsAnnotation) && !p.Annotations.Has(meta.RevisionsAnnotation)
	for _, c := range m.Applied {
		switch {
		case plan.IsIn(m.passed, c):
		case p.Annotations.Has(c.MarkKey):
			// It stays: the resourceVersion also changes with the object's status, and a
			// pod that is sent again must not change with it.
		case onlyNew:
			e.patch = append(e.patch, c.Marks)
			e.origin(c.String(), "metadata", "annotations", c.MarkKey)
		default:
			annotate(c.MarkKey, c.ResourceVersion, c.String())
		}
	}
	if revisions := m.recorded(); revisions != nil {
		if onlyNew {
			e.set(revisionsPath, revisions, nil)
		} else {
			annotations.Set(json.RawMessage(revisions), meta.RevisionsAnnotation)
		}
		e.origin("sallyport", "metadata", "annotations", meta.RevisionsAnnotation)
	}
	listed := p.Annotations.Get(meta.DecisionsAnnotation)
	for _, s := range m.skipped {
		if s.conflict != nil { // otherwise an earlier call has recorded it
			annotate(s.object.SkipMark(), s.object.SkipValue(s.reason), s.object.String())
		}
	}
	value := decisions(listed, m.Applied, m.invalid, m.Audited, skippedObjects(m.skipped), m.Outside)
	if onlyNew {
		e.set(decisionsPath, meta.Quote(value), nil)
		e.origin("sallyport", "metadata", "annotations", meta.DecisionsAnnotation)
		return
	}
	annotate(meta.DecisionsAnnotation, value, "sallyport")
	e.append(annotations)
}

// list emits additions to and removals from a list.
func (e *emitter) list(l *podstate.List) {
	if len(l.Added) == 0 && len(l.Removed) == 0 && len(l.Replaced) == 0 {
		return
	}
	path := l.Path()
	b := jsonpatch.NewBuilderAt(path, l.Raw)
	e.replace(b, l, path)
	for _, r := range l.Removed {
		b.Remove(strconv.Itoa(r.Index))
		e.originAt(path, r.Index, r.Origin)
	}
	e.appendAdded(b, l, path)
	e.append(b)
}

// tolerations emits a list whose elements may change.
func (e *emitter) tolerations(l *podstate.List, seconds []setSeconds) {
	if len(l.Added) == 0 && len(l.Replaced) == 0 && len(seconds) == 0 {
		return
	}
	path := l.Path()
	b := jsonpatch.NewBuilderAt(path, l.Raw)
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
		e.origin(s.origin.String(), "spec", "tolerations", index, "tolerationSeconds")
	}
	e.appendAdded(b, l, path)
	e.append(b)
}

func (e *emitter) replace(b *jsonpatch.Builder, l *podstate.List, path string) {
	for _, r := range l.Replaced {
		if r.Origin == nil {
			continue
		}
		b.Set(json.RawMessage(r.Value), strconv.Itoa(r.Index))
		e.originAt(path, r.Index, r.Origin)
	}
}

func (e *emitter) appendAdded(b *jsonpatch.Builder, l *podstate.List, path string) {
	if len(l.Added) == 0 {
		return
	}
	length := l.Length() - len(l.Removed)
	values := make([]json.RawMessage, len(l.Added))
	for i, added := range l.Added {
		values[i] = json.RawMessage(added.Value)
		e.originAt(path, length+i, added.Origin)
	}
	b.Append(nil, values...)
}

// set sets a member that is missing or has another value. Without an origin, the value
// is a container for others.
func (e *emitter) set(path string, value []byte, origin *plan.Plan) {
	e.patch = append(e.patch, jsonpatch.Operation{Op: jsonpatch.Add, Path: path, Value: value})
	if origin != nil && e.explain {
		e.origins = append(e.origins, admission.Origin{Path: path, Source: origin.String()})
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
func (e *emitter) originBelow(path string, origin *plan.Plan, tokens ...string) {
	if e.explain {
		e.origins = append(e.origins, admission.Origin{Path: path + jsonpatch.Pointer(tokens...), Source: origin.String()})
	}
}

// originAt records the origin of a list element.
func (e *emitter) originAt(list string, index int, origin *plan.Plan) {
	if e.explain {
		e.origins = append(e.origins, admission.Origin{Path: list + "/" + strconv.Itoa(index), Source: origin.String()})
	}
}
