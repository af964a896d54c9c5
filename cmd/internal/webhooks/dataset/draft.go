// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/podview/emit"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/affinity"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/internal/kube/nodeterms"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// A draft is a pod while plugins change it: its original content, the Datasets that it
// mounts, and the changes so far. The patch is made after all plugins.
type draft struct {
	pod       *pod
	namespace string
	uid       string // of the request
	source    Source
	settings  *Settings
	// mounted is sorted by claim.
	mounted []*Mounted
	// resolve resolves claims that plugins have added.
	resolve func(claims []string) ([]*Mounted, error)

	affinity *affinity.Affinity
	warnings []string
	// changes counts the plugins' changes.
	changes int

	labels, annotations []change
	volumes             []draftVolume
	containers, init    []draftContainer
}

// A change sets a label or annotation.
type change struct{ key, value, why string }

// A draftVolume is an original or new volume.
type draftVolume struct {
	volume
	// made is the replacement or new volume, nil if the original stays.
	made *corev1.Volume
	why  string
}

// A draftContainer is an original or new container.
type draftContainer struct {
	*container // nil for a new one
	// index is the original index.
	index int
	made  *corev1.Container
	why   string
	// Additions to an original container.
	propagate []propagation
	mounts    []corev1.VolumeMount
	postStart *corev1.LifecycleHandler
	whyMore   string
}

// A propagation sets mountPropagation of a mount.
type propagation struct {
	mount  int
	of     *Mounted
	plugin string
}

func newDraft(p *pod) *draft {
	d := &draft{pod: p, affinity: affinity.Read(p.affinity, p.selector()), volumes: make([]draftVolume, len(p.volumes))}
	for i := range p.volumes {
		d.volumes[i].volume = p.volumes[i]
	}
	d.containers = draftContainers(p.containers)
	d.init = draftContainers(p.init)
	return d
}

func draftContainers(list []container) []draftContainer {
	out := make([]draftContainer, len(list))
	for i := range list {
		out[i] = draftContainer{container: &list[i], index: i}
	}
	return out
}

func (c *draftContainer) containerName() string {
	if c.made != nil {
		return c.made.Name
	}
	return c.name
}

// dataset returns the Dataset of a claim, or nil.
func (d *draft) dataset(claim string) *Mounted {
	for _, m := range d.mounted {
		if m.Claim == claim {
			return m
		}
	}
	return nil
}

func (d *draft) annotation(key string) (string, bool) {
	for _, c := range d.annotations {
		if c.key == key {
			return c.value, true
		}
	}
	return d.pod.Annotations.Lookup(key)
}

func (d *draft) annotate(key, value, why string) {
	if present, ok := d.annotation(key); !ok || present != value {
		d.annotations = append(slices.DeleteFunc(d.annotations, func(c change) bool { return c.key == key }), change{key, value, why})
		d.changes++
	}
}

func (d *draft) label(key, value, why string) {
	if present, ok := d.pod.Labels.Lookup(key); !ok || present != value {
		d.labels = append(slices.DeleteFunc(d.labels, func(c change) bool { return c.key == key }), change{key, value, why})
		d.changes++
	}
}

// require and prefer count changes.
func (d *draft) require(wanted nodeterms.Alternatives, reason affinity.Reason) error {
	before := len(d.affinity.Reasons)
	reason.Wanted = wanted
	if len(wanted) == 0 {
		return nil
	}
	err := d.affinity.Require(wanted, reason)
	d.changes += len(d.affinity.Reasons) - before
	if err != nil {
		return refusef("%v", err)
	}
	return nil
}

func (d *draft) prefer(wanted []affinity.Preferred) {
	before := len(d.affinity.Preferred)
	d.affinity.Prefer(wanted)
	d.changes += len(d.affinity.Preferred) - before
}

func (d *draft) warnf(format string, args ...any) {
	d.warnings = append(d.warnings, fmt.Sprintf(format, args...))
}

// An emitter makes the patch of a draft.
type emitter struct{ emit.Patch }

// told records the origin of a change.
func (e *emitter) told(path, source string) { e.Origin(emit.Source(source), path) }

// emit makes the patch. Its error means that a list or map of the pod is malformed.
func (d *draft) emit(explain bool) emit.Patch {
	e := emitter{emit.New(explain, 8)}
	e.entries("labels", d.pod.RawLabels, d.labels, d.pod.Raw != nil)
	e.entries("annotations", d.pod.RawAnnotations, d.annotations, d.pod.Raw != nil || len(d.labels) > 0)
	d.affinity.Emit(&e.Patch)
	e.volumes(d)
	e.containers("containers", d.containers)
	e.containers("initContainers", d.init)
	return e.Patch
}

func (e *emitter) entries(field string, raw jsontext.Value, changes []change, metadata bool) {
	if len(changes) == 0 {
		return
	}
	if !metadata {
		e.Add("/metadata", json.RawMessage("{}"))
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.key, b.key) })
	if raw.Kind() != '{' && len(raw) > 0 && raw.Kind() != 'n' && e.Err == nil {
		e.Err = fmt.Errorf("its %s are not a list", field)
	}
	b := jsonpatch.NewBuilderAt("/metadata/"+field, raw)
	for _, c := range changes {
		if raw.Kind() == '{' {
			// Add overwrites existing members (RFC 6902, section 4.1).
			e.Add(jsonpatch.Pointer("metadata", field, c.key), rawjson.AppendString(nil, c.value))
		} else {
			b.Set(rawjson.AppendString(nil, c.value), c.key)
		}
		if e.Explains() {
			e.told(jsonpatch.Pointer("metadata", field, c.key), c.why)
		}
	}
	if raw.Kind() != '{' {
		e.Edit(b)
	}
}

// encode encodes a plugin's value in the field order of the API type.
func (e *emitter) encode(value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil && e.Err == nil {
		e.Err = err
	}
	return raw
}

func (e *emitter) volumes(d *draft) {
	length := len(d.pod.volumes)
	for i, v := range d.volumes {
		if v.made == nil {
			continue
		}
		path := "/spec/volumes/" + strconv.Itoa(i)
		value := e.encode(v.made)
		switch {
		case i < length:
			e.Replace(path, value)
		case i == 0 && !d.pod.hasVolumes:
			e.Add("/spec/volumes", slices.Concat([]byte("["), value, []byte("]")))
		default:
			e.Add(path, value)
		}
		e.told(path, v.why)
	}
}

// containers emits a list from front to back: everything before the current container
// is final.
func (e *emitter) containers(field string, list []draftContainer) {
	came := slices.ContainsFunc(list, func(c draftContainer) bool { return c.made == nil })
	for i := range list {
		c := &list[i]
		path := "/spec/" + field + "/" + strconv.Itoa(i)
		if c.made != nil {
			value, at := e.encode(c.made), path
			if !came && i == 0 {
				value, at = slices.Concat([]byte("["), value, []byte("]")), "/spec/"+field
			}
			e.Add(at, value)
			e.told(path, c.why)
			continue
		}
		had := len(c.container.mounts)
		for _, set := range c.propagate {
			at := path + "/volumeMounts/" + strconv.Itoa(set.mount) + "/mountPropagation"
			e.Add(at, hostToContainer)
			if e.Explains() {
				e.told(at, "dataset "+set.of.Title()+": "+set.plugin+": the container sees the mounts of the fuse")
			}
		}
		for j := range c.mounts {
			at := path + "/volumeMounts/" + strconv.Itoa(had+j)
			e.told(at, c.whyMore)
			value := e.encode(&c.mounts[j])
			if had+j == 0 {
				at, value = path+"/volumeMounts", slices.Concat([]byte("["), value, []byte("]"))
			}
			e.Add(at, value)
		}
		if c.postStart != nil {
			b := jsonpatch.NewBuilderAt(path+"/lifecycle", c.lifecycle)
			b.Set(e.encode(c.postStart), "postStart")
			e.Edit(b)
			e.told(path+"/lifecycle/postStart", c.whyMore)
		}
	}
}

var hostToContainer = json.RawMessage(`"HostToContainer"`)
