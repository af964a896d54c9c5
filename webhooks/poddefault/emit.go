// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// An emitter turns a merge without conflicts into a patch, and notes where each
// change comes from. It edits place by place: what stands there is at hand.
type emitter struct {
	patch   jsonpatch.Patch
	explain bool // note origins
	origins []admission.Origin
	err     error
}

// response is the answer to a pod without conflicts, with origins if somebody wants
// them. It denies what is no pod: an object in which a list or map is something else.
func (m *merge) response(explain bool) *admission.Response {
	e := emitter{patch: make(jsonpatch.Patch, 0, 16), explain: explain}
	p := m.pod
	e.metadata(m)
	if s := m.serviceAccount; s != nil && s.value != p.serviceAccountName {
		e.set("/spec/serviceAccountName", quote(s.value), s.origin)
	}
	if s := m.automount; s != nil {
		e.automount(p, s)
	}
	e.list(&p.volumes)
	e.tolerations(&p.tolerations, m.seconds)
	e.list(&p.pullSecrets)
	// Before anything inside their elements: a list may be sent as a whole, with
	// the bytes of the elements as they came.
	e.list(&p.initContainers)
	e.list(&p.containers)
	for i := range p.init {
		e.list(&p.init[i].volumeMounts) // automount may take one away
	}
	for i := range p.app {
		c := &p.app[i]
		e.list(&c.env)
		e.list(&c.envFrom)
		e.list(&c.volumeMounts)
	}
	e.commands("command", m.commands)
	e.commands("args", m.args)

	if e.err != nil {
		return admission.BadRequest("the request's object is no pod: %v", e.err)
	}
	resp := admission.Patched(e.patch).Warn(m.warnings...)
	resp.Origins = e.origins
	if len(m.applied) > 0 {
		resp.AuditAnnotations = map[string]string{"applied": names(m.applied)}
	}
	return resp
}

// metadata emits labels, annotations, the marks and the decisions.
func (e *emitter) metadata(m *merge) {
	p := m.pod
	if p.metadata.raw == nil {
		e.set("/metadata", jsontext.Value("{}"), nil)
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
		if added.field == "annotations" {
			annotate(added.entry.key, added.entry.value, added.origin.title)
			continue
		}
		labels.Set(quote(added.entry.value), added.entry.key)
		e.origin(added.origin.title, "metadata", "labels", added.entry.key)
	}
	for _, c := range m.applied {
		annotate(c.mark, c.resourceVersion, c.title)
	}
	annotate(DecisionsAnnotation, decisions(m.applied, m.invalid), "sallyport")
	e.append(labels)
	e.append(annotations)
}

// list emits what is added to a list, and what is taken away from it.
func (e *emitter) list(l *list) {
	if len(l.added) == 0 && len(l.removed) == 0 {
		return
	}
	path := l.path()
	b := jsonpatch.NewBuilderAt(path, l.raw)
	for _, r := range l.removed {
		b.Remove(strconv.Itoa(r.index))
		e.originAt(path, r.index, r.origin)
	}
	e.appendAdded(b, l, path)
	e.append(b)
}

// tolerations emits a list of which elements may change.
func (e *emitter) tolerations(l *list, seconds []setSeconds) {
	if len(l.added) == 0 && len(seconds) == 0 {
		return
	}
	path := l.path()
	b := jsonpatch.NewBuilderAt(path, l.raw)
	for _, s := range seconds {
		index := strconv.Itoa(s.index)
		if s.value == nil {
			b.Remove(index, "tolerationSeconds")
		} else {
			b.Set(s.value, index, "tolerationSeconds")
		}
		e.origin(s.origin.title, "spec", "tolerations", index, "tolerationSeconds")
	}
	e.appendAdded(b, l, path)
	e.append(b)
}

func (e *emitter) appendAdded(b *jsonpatch.Builder, l *list, path string) {
	if len(l.added) == 0 {
		return
	}
	length := len(l.elements()) - len(l.removed)
	values := make([]jsontext.Value, len(l.added))
	for i, added := range l.added {
		values[i] = added.value
		e.originAt(path, length+i, added.origin)
	}
	b.Append(nil, values...)
}

func (e *emitter) commands(field string, set []setCommand) {
	for _, s := range set {
		e.set(s.container.path+"/"+field, s.value, s.origin)
	}
}

// set sets a member that is not there, or has another value. Without an origin it
// is a container for what has one.
func (e *emitter) set(path string, value jsontext.Value, origin *Compiled) {
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

// originAt is the origin of an element of a list.
func (e *emitter) originAt(list string, index int, origin *Compiled) {
	if e.explain {
		e.origins = append(e.origins, admission.Origin{Path: list + "/" + strconv.Itoa(index), Source: origin.title})
	}
}

func quote(s string) jsontext.Value {
	return jsonpatch.AppendString(make([]byte, 0, len(s)+2), s)
}

func names(objects []*Compiled) string {
	if len(objects) == 1 {
		return objects[0].name
	}
	out := make([]string, len(objects))
	for i, c := range objects {
		out[i] = c.name
	}
	return strings.Join(out, ",")
}
