// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/internal/kube/nodeterms"
)

// entries are labels or annotations, held in the pod's original bytes.
type entries []entry

type entry struct{ key, value []byte }

func (e entries) lookup(key string) (string, bool) {
	for _, entry := range e {
		if string(entry.key) == key {
			return string(entry.value), true
		}
	}
	return "", false
}

func (e entries) get(key string) string {
	value, _ := e.lookup(key)
	return value
}

// is reports whether the entry exists with the value "true".
func (e entries) is(key string) bool {
	for _, entry := range e {
		if string(entry.key) == key {
			return string(entry.value) == "true"
		}
	}
	return false
}

// podMetadata decides whether to read the rest of a pod.
type podMetadata struct {
	there                     bool
	name                      string // or generateName with its trailing dash
	namespace                 string
	labels, annotations       entries
	rawLabels, rawAnnotations jsontext.Value // nil if absent

	spec int // offset of the spec, 0 if unknown
}

// asks reports whether the pod has an opt-in label.
func (m *podMetadata) asks() bool {
	for i := range optInLabels {
		if m.labels.is(optInLabels[i].label) {
			return true
		}
	}
	return false
}

// readMetadata reads the pod's metadata, and no spec that follows it. Unless all is
// set, it stops after the labels of a pod without opt-in: the rest, above all the
// managed fields, is most of it. It returns false if the pod or its metadata is
// malformed.
func readMetadata(raw []byte, all bool) (meta podMetadata, ok bool) {
	r := rawjson.NewReader(raw)
	var generateName []byte
	valid := true
	ok = r.Object(func(field []byte) {
		switch string(field) {
		case "metadata":
			if r.Kind() == 'n' {
				return
			}
			meta.there = true
		case "spec":
			meta.spec = r.Offset()
			if meta.there {
				r.Stop()
			}
			return
		default:
			return
		}
		valid = r.Object(func(field []byte) {
			switch string(field) {
			case "name":
				meta.name = text(&r)
			case "generateName":
				generateName, _ = r.String()
			case "namespace":
				meta.namespace = text(&r)
			case "labels":
				meta.rawLabels, meta.labels = readEntries(&r)
				if !all && !meta.asks() {
					r.Stop()
				}
			case "annotations":
				meta.rawAnnotations, meta.annotations = readEntries(&r)
			}
		})
	})
	if meta.name == "" {
		meta.name = string(generateName)
	}
	return meta, ok && valid
}

func readEntries(r *rawjson.Reader) (raw jsontext.Value, e entries) {
	start := r.Offset()
	r.Object(func(key []byte) {
		if value, ok := r.String(); ok {
			if e == nil {
				e = make(entries, 0, 8)
			}
			e = append(e, entry{key, value})
		}
	})
	return r.Since(start), e
}

// pod is what the plugins need of a pod.
type pod struct {
	podMetadata
	volumes          []volume
	containers, init []container
	nodeSelector     entries
	affinity         jsontext.Value // nil if absent
	hasVolumes       bool           // spec.volumes is a list
}

// A volume is an original volume.
type volume struct {
	name, claim string
}

// A container is an original container.
type container struct {
	name      string
	mounts    []mount
	lifecycle jsontext.Value
}

// A mount is one of a container's volumeMounts.
type mount struct {
	volume, path string
	// propagation is the mountPropagation, or "" if it is absent or null.
	propagation string
	// recursive is set if the mount is recursively read-only, which excludes
	// propagation (k8s.io/api/core/v1, VolumeMount).
	recursive bool
}

// readPod reads the spec of a pod in one pass. It returns false if it is missing, or a
// volume or container is malformed.
func readPod(raw []byte, meta podMetadata) (*pod, bool) {
	p := &pod{podMetadata: meta}
	if meta.spec == 0 {
		return p, false
	}
	r := rawjson.NewReader(raw[meta.spec:])
	valid := true
	ok := r.Object(func(field []byte) {
		switch string(field) {
		case "volumes":
			p.hasVolumes = r.Kind() == '['
			r.Array(func(int) {
				var v volume
				valid = r.Object(func(field []byte) {
					switch string(field) {
					case "name":
						v.name = text(&r)
					case "persistentVolumeClaim":
						r.Object(func(field []byte) {
							if string(field) == "claimName" {
								v.claim = text(&r)
							}
						})
					}
				}) && valid
				p.volumes = append(p.volumes, v)
			})
		case "containers":
			p.containers = readContainers(&r, &valid)
		case "initContainers":
			p.init = readContainers(&r, &valid)
		case "nodeSelector":
			_, p.nodeSelector = readEntries(&r)
		case "affinity":
			p.affinity = r.Value()
		}
	})
	return p, ok && valid
}

func readContainers(r *rawjson.Reader, valid *bool) []container {
	var out []container
	r.Array(func(int) {
		var c container
		*valid = r.Object(func(field []byte) {
			switch string(field) {
			case "name":
				c.name = text(r)
			case "volumeMounts":
				r.Array(func(int) {
					var m mount
					r.Object(func(field []byte) {
						switch string(field) {
						case "name":
							m.volume = text(r)
						case "mountPath":
							m.path = text(r)
						case "mountPropagation":
							m.propagation = text(r)
						case "recursiveReadOnly":
							mode := text(r)
							m.recursive = mode != "" && mode != "Disabled"
						}
					})
					c.mounts = append(c.mounts, m)
				})
			case "lifecycle":
				c.lifecycle = r.Value()
			}
		}) && *valid
		out = append(out, c)
	})
	return out
}

// selector returns the requirements of the pod's node selector.
func (p *pod) selector() (list []nodeterms.Requirement) {
	for _, e := range p.nodeSelector {
		list = append(list, nodeterms.Requirement{Key: string(e.key), Operator: nodeterms.In, Values: []string{string(e.value)}})
	}
	return list
}

// claims returns the names of the claims in a pod's volumes, sorted, without
// duplicates.
func (p *pod) claims() []string {
	var out []string
	for _, v := range p.volumes {
		if v.claim != "" {
			out = append(out, v.claim)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
