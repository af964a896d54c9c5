// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/internal/kube/nodeterms"
)

// asks reports whether the pod has an opt-in label.
func asks(md *podmeta.Metadata) bool {
	return slices.ContainsFunc(optInLabels, func(in optIn) bool { return is(md.Labels, in.label) })
}

// is reports whether a label exists with the value "true".
func is(labels podmeta.Labels, key string) bool { return labels.Get(key) == "true" }

// readMetadata reads the pod's metadata, and no spec that follows it. Unless all is
// set, it stops after the labels of a pod without opt-in: the rest, above all the
// managed fields, is most of it. It returns false if the pod or its metadata is
// malformed.
func readMetadata(raw []byte, all bool) (md podmeta.Metadata, ok bool) {
	md, ok = podmeta.Read(raw, podmeta.Labeled)
	if all || asks(&md) {
		md.Complete()
	}
	return md, ok
}

// pod is what the plugins need of a pod.
type pod struct {
	podmeta.Metadata
	volumes          []volume
	containers, init []container
	nodeSelector     podmeta.Labels
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
func readPod(raw []byte, md podmeta.Metadata) (*pod, bool) {
	p := &pod{Metadata: md}
	if md.Spec == 0 {
		return p, false
	}
	r := rawjson.NewReader(raw[md.Spec:])
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
			p.nodeSelector, _ = podmeta.ReadLabels(&r, len(raw))
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
	for _, e := range p.nodeSelector.List {
		list = append(list, nodeterms.Requirement{Key: string(e.Key), Operator: nodeterms.In, Values: []string{string(e.Value)}})
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
