// SPDX-License-Identifier: Apache-2.0

// Package podstate is a pod while plans are folded into it: its original bytes, and what plans have
// added, replaced and removed so far.
//
// In goes a pod as JSON; out come its lists and fields, read on demand and within a budget. It knows
// no conflicts and no policies.
package podstate

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// Pod is what the merge needs of a pod: the lists that PodDefaults add to, with their
// elements, and the scalars that they set.
type Pod struct {
	meta.Metadata
	Volumes, Tolerations, PullSecrets List
	Containers, InitContainers        List
	App                               []Container // spec.containers
	Init                              []Container // spec.initContainers
	Spec                              Holder
	Bounds                            meta.Budget
	limitRanges                       map[string]bool // see [Pod.LimitRanged]
}

// Container is what the merge needs of a container.
type Container struct {
	Name                       string
	Env, EnvFrom, VolumeMounts List
	Init                       bool // of spec.initContainers
	Devices                    bool // it has volumeDevices of its own
	// Origin is the object that adds the container, nil for the pod's own. Its bytes
	// are then the PodDefault's, and additions go into them.
	Origin *plan.Plan
	Holder
}

// Read reads the spec of a pod in one pass, and stops when it exceeds the bounds. It
// reads the elements of lists that objects add to; other lists are read on demand. It
// returns false if there is no spec or a container is malformed.
func Read(raw []byte, md meta.Metadata, objects []*plan.Plan, within meta.Budget) (p *Pod, ok bool) {
	p = &Pod{Metadata: md, Bounds: within}
	p.Metadata.Complete()
	b := &p.Bounds
	p.Volumes = List{Kind: plan.VolumeKind, parent: "/spec", Field: "volumes", bounds: b}
	p.Tolerations = List{Kind: plan.TolerationKind, parent: "/spec", Field: "tolerations", bounds: b}
	p.PullSecrets = List{Kind: plan.PullSecretKind, parent: "/spec", Field: "imagePullSecrets", bounds: b}
	p.Containers = List{Kind: plan.ContainerKind, parent: "/spec", Field: "containers", bounds: b}
	p.InitContainers = List{Kind: plan.ContainerKind, parent: "/spec", Field: "initContainers", bounds: b}
	if p.Metadata.Spec == 0 {
		return p, false
	}
	if b.Bytes = len(raw); b.Bytes > meta.MaxPod {
		b.Exceed(fmt.Sprintf("the pod has %d bytes of JSON; PodDefaults are merged into pods of at most %d", len(raw), meta.MaxPod))
		return p, true
	}
	b.Scans(len(raw))
	p.Spec.Path, p.Spec.Bounds = "/spec", b
	r := rawjson.NewReader(raw[p.Metadata.Spec:])
	wanted := wantedBy(objects)
	valid := true
	ok = r.Object(func(field []byte) {
		switch string(field) {
		case "volumes":
			p.Volumes.take(&r, &wanted.volumes)
		case "tolerations":
			p.Tolerations.take(&r, &wanted.tolerations)
		case "imagePullSecrets":
			p.PullSecrets.take(&r, &wanted.pullSecrets)
		case "containers":
			p.Containers.Raw, p.App = p.readContainers(&r, "containers", wanted, &valid)
		case "initContainers":
			p.InitContainers.Raw, p.Init = p.readContainers(&r, "initContainers", wanted.ofInitContainers(), &valid)
		}
	})
	p.Spec.Raw = r.Since(0)
	return p, ok && valid
}

func (p *Pod) readContainers(r *rawjson.Reader, listField string, wanted *WantedLists, valid *bool) (jsontext.Value, []Container) {
	containers := make([]Container, 0, 2)
	start := r.Offset()
	r.Array(func(index int) {
		if len(p.App)+len(p.Init)+index == meta.MaxContainers {
			p.Bounds.Exceed(fmt.Sprintf("the pod has more than %d containers", meta.MaxContainers))
			r.Stop()
			return
		}
		containers = append(containers, Container{})
		c := &containers[len(containers)-1]
		object := c.Read(r, "/spec/"+listField+"/"+strconv.Itoa(index), wanted, &p.Bounds)
		c.Init = listField == "initContainers"
		*valid = *valid && object
	})
	return r.Since(start), containers
}

// Read reads a container in one pass. It returns false if the container is malformed.
func (c *Container) Read(r *rawjson.Reader, path string, wanted *WantedLists, b *meta.Budget) bool {
	c.Path, c.Bounds = path, b
	c.Env = List{Kind: plan.EnvKind, parent: path, Field: "env", bounds: b}
	c.EnvFrom = List{Kind: plan.EnvFromKind, parent: path, Field: "envFrom", bounds: b}
	c.VolumeMounts = List{Kind: plan.MountKind, parent: path, Field: "volumeMounts", bounds: b}
	start := r.Offset()
	object := r.Object(func(field []byte) {
		switch string(field) {
		case "name":
			name, _ := r.String()
			c.Name = string(name)
		case "env":
			c.Env.take(r, &wanted.env)
		case "envFrom":
			c.EnvFrom.take(r, &wanted.envFrom)
		case "volumeMounts":
			c.VolumeMounts.take(r, &wanted.volumeMounts)
		case "volumeDevices":
			c.Devices = true
		}
	})
	c.Raw = r.Since(start)
	return object
}

// Native reports whether an init container is a native sidecar, which keeps running
// next to the others (KEP-753).
func (c *Container) Native() bool {
	policy, _ := rawjson.Lookup(c.Raw, "restartPolicy")
	return c.Init && string(policy) == `"Always"`
}
