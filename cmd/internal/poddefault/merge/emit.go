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
	"github.com/sallyport-io/sallyport/cmd/internal/podview/emit"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// An emitter turns a merge without conflicts into a patch and records the origin of
// each change. It edits each place directly, using the content already read.
type emitter struct{ emit.Patch }

// itself is the source of what no object asks for.
const itself = emit.Source("sallyport")

// Response returns the answer to a pod without conflicts, with origins if explain is
// set. It denies malformed pods, in which a list or map has another type.
func (m *Merge) Response(explain bool) *admission.Response {
	e := emitter{emit.New(explain, len(m.Applied)+len(m.entries)+8)}
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

	if e.Err != nil {
		return admission.BadRequest("not a pod: %v", e.Err)
	}
	size := 0
	for i := range e.Operations {
		size += len(e.Operations[i].Path) + len(e.Operations[i].Value)
	}
	if size > meta.MaxPod {
		p.Bounds.Exceed(fmt.Sprintf("the patch would have more than %d MiB", meta.MaxPod>>20))
	}
	resp := e.Patch.Response().Warn(m.Told()...)
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
		e.Origin(v.Origin, h.Path, v.Tokens...)
		for _, tokens := range v.Removes {
			if _, there := h.Lookup(tokens...); there {
				b.Remove(tokens...)
				e.Origin(v.Origin, h.Path, tokens...)
			}
		}
	}
	for _, l := range h.Lists {
		path := l.Path()
		e.replace(b, &l.List, path, l.Tokens...)
		e.appendAdded(b, &l.List, path, l.Tokens...)
	}
	if h.Terms != nil {
		e.nodeTerms(b, h)
	}
	e.Edit(b)
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
		e.Origin(term.Origin, h.Path, append(slices.Clone(podstate.NodeTermTokens), strconv.Itoa(index))...)
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
		e.Add("/metadata", []byte("{}"))
	}
	labels := jsonpatch.NewBuilderAt("/metadata/labels", p.RawLabels)
	annotations := jsonpatch.NewBuilderAt("/metadata/annotations", p.RawAnnotations)
	annotate := func(key, value string, source fmt.Stringer) {
		if present, ok := p.Annotations.Lookup(key); !ok || present != value {
			annotations.Set(meta.Quote(value), key)
			e.Origin(source, "", "metadata", "annotations", key)
		}
	}
	for _, added := range m.entries {
		if added.field == annotationsField {
			annotate(added.entry.Key, added.entry.Value, added.origin)
			continue
		}
		labels.Set(meta.Quote(added.entry.Value), added.entry.Key)
		e.Origin(added.origin, "", "metadata", "labels", added.entry.Key)
	}
	e.Edit(labels)
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
			e.Operations = append(e.Operations, c.Marks)
			e.Origin(c, "", "metadata", "annotations", c.MarkKey)
		default:
			annotate(c.MarkKey, c.ResourceVersion, c)
		}
	}
	if revisions := m.recorded(); revisions != nil {
		if onlyNew {
			e.Add(revisionsPath, revisions)
		} else {
			annotations.Set(json.RawMessage(revisions), meta.RevisionsAnnotation)
		}
		e.Origin(itself, "", "metadata", "annotations", meta.RevisionsAnnotation)
	}
	listed := p.Annotations.Get(meta.DecisionsAnnotation)
	for _, s := range m.skipped {
		if s.conflict != nil { // otherwise an earlier call has recorded it
			annotate(s.object.SkipMark(), s.object.SkipValue(s.reason), s.object)
		}
	}
	value := decisions(listed, m.Applied, m.invalid, m.Audited, skippedObjects(m.skipped), m.Outside)
	if onlyNew {
		e.Add(decisionsPath, meta.Quote(value))
		e.Origin(itself, "", "metadata", "annotations", meta.DecisionsAnnotation)
		return
	}
	annotate(meta.DecisionsAnnotation, value, itself)
	e.Edit(annotations)
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
		e.OriginAt(r.Origin, path, r.Index)
	}
	e.appendAdded(b, l, path)
	e.Edit(b)
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
		e.Origin(s.origin, "", "spec", "tolerations", index, "tolerationSeconds")
	}
	e.appendAdded(b, l, path)
	e.Edit(b)
}

// replace emits replaced elements of the list at a path, which is below the builder's place.
func (e *emitter) replace(b *jsonpatch.Builder, l *podstate.List, path string, below ...string) {
	for _, r := range l.Replaced {
		if r.Origin == nil {
			continue
		}
		b.Set(json.RawMessage(r.Value), append(slices.Clip(below), strconv.Itoa(r.Index))...)
		e.OriginAt(r.Origin, path, r.Index)
	}
}

// appendAdded is [emitter.replace] for added elements.
func (e *emitter) appendAdded(b *jsonpatch.Builder, l *podstate.List, path string, below ...string) {
	if len(l.Added) == 0 {
		return
	}
	length := l.Length() - len(l.Removed)
	values := make([]json.RawMessage, len(l.Added))
	for i, added := range l.Added {
		values[i] = json.RawMessage(added.Value)
		e.OriginAt(added.Origin, path, length+i)
	}
	b.Append(below, values...)
}
