// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// metadata decides whether to read the rest of a pod.
type metadata struct {
	object       []byte         // the pod
	raw          jsontext.Value // nil if absent; up to left until it is complete
	start, left  int            // offsets of raw and of what is left to read, 0 if nothing is
	generateName []byte

	name        string // or generateName with its trailing dash
	namespace   string
	labels      Labels
	annotations Labels
	// The original values, nil if absent.
	rawLabels, rawAnnotations jsontext.Value
	crowded                   bool // too many labels or annotations to read
	request                   types.UID
	dryRun                    bool
	workload                  Workload // see workloadOf; empty until needed
	history                   *history // see past; nil until needed
	unplaced                  bool     // whether its place in rollouts by pod is unknown, see Includes

	spec int // offset of the spec, 0 if unknown
}

// readMetadata reads what selects objects for a pod. It stops there: most pods are not
// read further, and managedFields are half of many. It returns false if the pod or its
// metadata is malformed.
func readMetadata(raw []byte) (md metadata, ok bool) {
	md.object = raw
	r := rawjson.NewReader(raw)
	valid := true
	ok = r.Object(func(field []byte) {
		switch string(field) {
		case "spec":
			md.spec = r.Offset()
			if md.raw != nil {
				r.Stop()
			}
		case "metadata":
			if r.Kind() == 'n' {
				return
			}
			md.start = r.Offset()
			valid = r.Object(func(field []byte) {
				md.read(&r, field)
				if md.namespace != "" && md.rawLabels != nil && md.rawAnnotations != nil {
					md.left = r.Offset()
					r.Stop()
				}
			})
			md.raw = r.Since(md.start)
		}
	})
	if md.name == "" {
		md.name = string(md.generateName)
	}
	return md, ok && valid
}

// complete reads what readMetadata left, if anything.
func (md *metadata) complete() {
	if md.left == 0 {
		return
	}
	r := rawjson.NewReader(md.object[md.left:])
	r.Rest(func(field []byte) { md.read(&r, field) })
	end := md.left + len(r.Since(0))
	md.raw = md.object[md.start:end:end]
	if md.name == "" {
		md.name = string(md.generateName)
	}
	r.Rest(func(field []byte) {
		if string(field) == "spec" {
			md.spec = md.left + r.Offset()
			r.Stop()
		}
	})
	md.left = 0
}

// read reads a field of the metadata.
func (md *metadata) read(r *rawjson.Reader, field []byte) {
	switch string(field) {
	case "name":
		name, _ := r.String()
		md.name = string(name)
	case "generateName":
		md.generateName, _ = r.String()
	case "namespace":
		namespace, _ := r.String()
		md.namespace = string(namespace)
	case "labels":
		md.rawLabels, md.labels = md.readLabels(r)
	case "annotations":
		md.rawAnnotations, md.annotations = md.readLabels(r)
	}
}

func (md *metadata) readLabels(r *rawjson.Reader) (raw jsontext.Value, l Labels) {
	start := r.Offset()
	r.Object(func(key []byte) {
		if len(l.list) == maxElements {
			md.crowded = true
			r.Stop()
			return
		}
		if value, ok := r.String(); ok {
			if l.list == nil {
				l.list = make([]label, 0, 8)
			}
			l.list = append(l.list, label{key, value})
		}
	})
	l.reindex()
	return r.Since(start), l
}

// pod is what the merge needs of a pod: the lists that PodDefaults add to, with their
// elements, and the scalars that they set.
type pod struct {
	metadata
	volumes, tolerations, pullSecrets list
	containers, initContainers        list
	app                               []container // spec.containers
	init                              []container // spec.initContainers
	spec                              holder
	bounds                            bounds
}

// container is what the merge needs of a container.
type container struct {
	name                       string
	env, envFrom, volumeMounts list
	init                       bool // of spec.initContainers
	// origin is the object that adds the container, nil for the pod's own. Its bytes
	// are then the PodDefault's, and additions go into them.
	origin *Compiled
	holder
}

// readPod reads the spec of a pod in one pass, and stops when it exceeds the bounds. It
// reads the elements of lists that objects add to; other lists are read on demand. It
// returns false if there is no spec or a container is malformed.
func readPod(raw []byte, md metadata, objects []*Compiled, within bounds) (p *pod, ok bool) {
	p = &pod{metadata: md, bounds: within}
	p.metadata.complete()
	b := &p.bounds
	p.volumes = list{kind: volumeKind, parent: "/spec", field: "volumes", bounds: b}
	p.tolerations = list{kind: tolerationKind, parent: "/spec", field: "tolerations", bounds: b}
	p.pullSecrets = list{kind: pullSecretKind, parent: "/spec", field: "imagePullSecrets", bounds: b}
	p.containers = list{kind: containerKind, parent: "/spec", field: "containers", bounds: b}
	p.initContainers = list{kind: containerKind, parent: "/spec", field: "initContainers", bounds: b}
	if p.metadata.spec == 0 {
		return p, false
	}
	if b.bytes = len(raw); b.bytes > maxPod {
		b.exceed(fmt.Sprintf("the pod has %d bytes of JSON; PodDefaults are merged into pods of at most %d", len(raw), maxPod))
		return p, true
	}
	b.scans(len(raw))
	p.spec.path, p.spec.bounds = "/spec", b
	r := rawjson.NewReader(raw[p.metadata.spec:])
	wanted := wantedBy(objects)
	valid := true
	ok = r.Object(func(field []byte) {
		switch string(field) {
		case "volumes":
			p.volumes.take(&r, wanted.volumes)
		case "tolerations":
			p.tolerations.take(&r, wanted.tolerations)
		case "imagePullSecrets":
			p.pullSecrets.take(&r, wanted.pullSecrets)
		case "containers":
			p.containers.raw, p.app = p.readContainers(&r, "containers", wanted, &valid)
		case "initContainers":
			p.initContainers.raw, p.init = p.readContainers(&r, "initContainers", wanted.ofInitContainers(), &valid)
		}
	})
	p.spec.raw = r.Since(0)
	return p, ok && valid
}

func (p *pod) readContainers(r *rawjson.Reader, listField string, wanted wantedLists, valid *bool) (jsontext.Value, []container) {
	containers := make([]container, 0, 2)
	start := r.Offset()
	r.Array(func(index int) {
		if len(p.app)+len(p.init)+index == maxContainers {
			p.bounds.exceed(fmt.Sprintf("the pod has more than %d containers", maxContainers))
			r.Stop()
			return
		}
		containers = append(containers, container{})
		c := &containers[len(containers)-1]
		object := c.read(r, "/spec/"+listField+"/"+strconv.Itoa(index), wanted, &p.bounds)
		c.init = listField == "initContainers"
		*valid = *valid && object
	})
	return r.Since(start), containers
}

// read reads a container in one pass. It returns false if the container is malformed.
func (c *container) read(r *rawjson.Reader, path string, wanted wantedLists, b *bounds) bool {
	c.path, c.bounds = path, b
	c.env = list{kind: envKind, parent: path, field: "env", bounds: b}
	c.envFrom = list{kind: envFromKind, parent: path, field: "envFrom", bounds: b}
	c.volumeMounts = list{kind: mountKind, parent: path, field: "volumeMounts", bounds: b}
	start := r.Offset()
	object := r.Object(func(field []byte) {
		switch string(field) {
		case "name":
			name, _ := r.String()
			c.name = string(name)
		case "env":
			c.env.take(r, wanted.env)
		case "envFrom":
			c.envFrom.take(r, wanted.envFrom)
		case "volumeMounts":
			c.volumeMounts.take(r, wanted.volumeMounts)
		}
	})
	c.raw = r.Since(start)
	return object
}

// native reports whether an init container is a native sidecar, which keeps running
// next to the others (KEP-753).
func (c *container) native() bool {
	policy, _ := rawjson.Lookup(c.raw, "restartPolicy")
	return c.init && string(policy) == `"Always"`
}

// empty reports whether Kubernetes treats a value as unset.
func empty(value jsontext.Value) bool {
	switch value.Kind() {
	case 'n':
		return true
	case '[':
		filled := false
		r := rawjson.NewReader(value)
		r.Array(func(int) { filled = true })
		return !filled
	}
	return false
}
