// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// The API server validates a pod after the webhooks have changed it, and its error
// names a field but not who set it. An object that can never pass is left out.
// Combinations with this pod that cannot pass are denied here, naming the objects.
// These are the rules of k8s.io/kubernetes, pkg/apis/core/validation, that a pod and
// additions can break together. Problems of the pod alone are left to the API server.

// mayClash reports whether the object has anything that these rules concern.
func (c *Compiled) mayClash() bool {
	for _, lists := range [][]fieldList{c.podLists, c.containerLists} {
		for i := range lists {
			if slices.Contains([]*listKind{portKind, deviceKind, claimKind, nameserverKind, searchKind, gateKind, capabilityAddKind}, lists[i].kind) {
				return true
			}
		}
	}
	ofPod := []string{"hostUsers", "shareProcessNamespace", "dnsPolicy"}
	return slices.ContainsFunc(c.podValues, func(f fieldValue) bool { return slices.Contains(ofPod, f.tokens[0]) }) ||
		slices.ContainsFunc(c.containerValues, func(f fieldValue) bool { return f.tokens[0] == "securityContext" }) ||
		slices.ContainsFunc(c.resources, func(q quantity) bool { return whole(q.name) }) ||
		slices.ContainsFunc(c.containers, func(w item) bool { return bytes.Contains(w.value, []byte(`"ports"`)) }) || c.mayClashWithPod()
}

// finished is a pod after all objects, of which rules are checked.
type finished struct {
	pod     *pod
	applied []*Compiled
	fresh   []*container // containers of objects
	// refuse is called with what the API server would refuse because of two objects, of which
	// nil is the pod.
	refuse func(a, b *Compiled, what string)
}

// check reports what the API server would refuse.
func (f *finished) check() {
	if slices.ContainsFunc(f.applied, func(c *Compiled) bool { return len(c.resources)+len(c.containers)+len(c.initContainers) > 0 }) {
		f.podLevel()
	}
	if !slices.ContainsFunc(f.applied, func(c *Compiled) bool { return c.clashes }) {
		return
	}
	var running []*container // those of spec.containers
	for t := range f.containers() {
		f.portNames(t)
		f.devices(t)
		f.escalation(t)
		f.figures(t)
		f.claims(t)
		if !t.init {
			running = append(running, t)
		}
	}
	f.hostPorts(running)
	f.host()
	f.gates()
	f.nameservers()
	f.atMost(3, nameserverKind, "dnsConfig", "nameservers")
	f.atMost(32, searchKind, "dnsConfig", "searches")
	f.foreseePod()
}

// containers yields all containers of the final pod: its own, except replaced ones, and
// those that PodDefaults add.
func (f *finished) containers() iter.Seq[*container] {
	return func(yield func(*container) bool) {
		for _, containers := range [][]container{f.pod.app, f.pod.init} {
			for i := range containers {
				if containers[i].origin == nil && !yield(&containers[i]) { // those with an origin are replaced
					return
				}
			}
		}
		for _, fresh := range f.fresh {
			if !yield(fresh) {
				return
			}
		}
	}
}

// earlier reports whether a comes before b in order of application; nil is the pod.
func earlier(a, b *Compiled) bool {
	return b != nil && (a == nil || inOrder(a, b) < 0)
}

// all returns the final elements of the list.
func (l *list) all() []item {
	out := make([]item, 0, l.length()+len(l.added))
	l.bounds.did(workOfVisit * cap(out))
	for i := range l.length() {
		out = append(out, *l.at(i))
	}
	return append(out, l.added...)
}

// all returns the final elements of a list of the holder.
func (h *holder) all(kind *listKind, tokens ...string) []item {
	for _, known := range h.lists {
		if known.kind == kind && slices.Equal(known.tokens, tokens) {
			return known.all()
		}
	}
	raw, _ := h.lookup(tokens...)
	return (&list{kind: kind, raw: raw, bounds: h.bounds}).all()
}

// final returns a field's final value and the object that sets it, nil if it is the
// holder's own.
func (h *holder) final(tokens ...string) (value jsontext.Value, by *Compiled) {
	if set := h.value(tokens); set != nil && !set.there {
		return set.value, set.origin
	}
	value, _ = h.lookup(tokens...)
	return value, nil
}

// of returns the object that adds an element of the container.
func (c *container) of(w item) *Compiled {
	if w.origin == nil {
		return c.origin
	}
	return w.origin
}

// hostPorts: unique by protocol and address across concurrently running containers.
func (f *finished) hostPorts(running []*container) {
	hostNetwork := string(f.pod.spec.member("hostNetwork")) == "true"
	type taker struct {
		container string
		by        *Compiled
		told      bool
	}
	takers := map[string]*taker{}
	for _, t := range running {
		for _, port := range t.all(portKind, "ports") {
			number := string(member(port.value, "hostPort"))
			if hostNetwork && (number == "" || number == "0") { // the API server's default
				number = string(member(port.value, "containerPort"))
			}
			if number == "" || number == "0" {
				continue
			}
			_, protocol, _ := strings.Cut(port.key, "/")
			key := protocol + "/" + string(memberText("hostIP")(port.value)) + "/" + number
			if first := takers[key]; first == nil {
				takers[key] = &taker{t.name, t.of(port), false}
			} else if !first.told {
				first.told = first.by != nil || t.of(port) != nil
				f.refuse(first.by, t.of(port), fmt.Sprintf("hostPort %s is taken by the containers %s and %s", number, first.container, t.name))
			}
		}
	}
}

// portNames: unique within a container.
func (f *finished) portNames(t *container) {
	named := map[string]item{}
	for _, port := range t.all(portKind, "ports") {
		name := string(memberText("name")(port.value))
		if name == "" {
			continue
		}
		if other, taken := named[name]; taken {
			f.refuse(t.of(other), t.of(port), fmt.Sprintf("the ports %s and %s of container %s have the same name", other.key, port.key, t.name))
			return
		}
		named[name] = port
	}
}

// devices: volumes of claims that are not also mounted, at unique paths.
func (f *finished) devices(t *container) {
	devices := t.all(deviceKind, "volumeDevices")
	if len(devices) == 0 {
		return
	}
	paths, mounted := map[string]item{}, map[string]item{} // mounts, by path and by volume
	for _, mount := range t.volumeMounts.all() {
		paths[mount.key], mounted[string(memberText("name")(mount.value))] = mount, mount
	}
	attached := map[string]item{}
	for _, device := range devices {
		name := string(memberText("name")(device.value))
		if other, twice := attached[name]; twice {
			f.refuse(t.of(other), t.of(device), fmt.Sprintf("the volume %s has two device paths in container %s", name, t.name))
		} else {
			attached[name] = device
		}
		mount, too := paths[device.key]
		if other, also := mounted[name]; also && (!too || earlier(t.of(other), t.of(mount))) {
			mount, too = other, true
		}
		if too {
			f.refuse(t.of(mount), t.of(device), fmt.Sprintf("the device %s of container %s is a mount too, by its path or by its volume", device.key, t.name))
		}
		volume, _ := f.pod.volumes.find(name)
		if volume != nil && member(volume.value, "persistentVolumeClaim") == nil && member(volume.value, "ephemeral") == nil {
			f.refuse(volume.origin, t.of(device), fmt.Sprintf("the volume %s of the device %s of container %s is of no claim", name, device.key, t.name))
		}
	}
}

// escalation: a container that is privileged, or nearly so, must allow privilege escalation.
func (f *finished) escalation(t *container) {
	escalation, by := t.final("securityContext", "allowPrivilegeEscalation")
	if string(escalation) != "false" {
		return
	}
	by = cmp.Or(by, t.origin)
	if privileged, other := t.final("securityContext", "privileged"); string(privileged) == "true" {
		f.refuse(cmp.Or(other, t.origin), by, fmt.Sprintf("container %s is privileged, and allowPrivilegeEscalation is false", t.name))
	}
	for _, capability := range t.all(capabilityAddKind, "securityContext", "capabilities", "add") {
		if capability.key == "CAP_SYS_ADMIN" {
			f.refuse(by, t.of(capability), fmt.Sprintf("container %s adds the capability CAP_SYS_ADMIN, and allowPrivilegeEscalation is false", t.name))
		}
	}
}

// whole reports whether a resource's request must equal its limit.
func whole(name string) bool {
	return meta.Extended(corev1.ResourceName(name)) || strings.HasPrefix(name, corev1.ResourceHugePagesPrefix)
}

// figures: for resources that cannot be overcommitted, the request equals the limit.
func (f *finished) figures(t *container) {
	var told nameSet
	for _, set := range t.values {
		if set.tokens[0] != "resources" || set.there || !whole(set.tokens[2]) || told.has(set.tokens[2]) {
			continue
		}
		request, requested := t.quantity("requests", set.tokens[2])
		limit, limited := t.quantity("limits", set.tokens[2])
		if requested && (!limited || request.Cmp(limit) != 0) {
			told.add(set.tokens[2])
			f.refuse(nil, set.origin, fmt.Sprintf("request and limit of %s of container %s are not the same", set.tokens[2], t.name))
		}
	}
}

// claims: containers may only use claims of the pod.
func (f *finished) claims(t *container) {
	claims := t.all(claimKind, "resources", "claims")
	if len(claims) == 0 {
		return
	}
	ofPod := f.pod.spec.list(&fieldList{kind: podClaimKind, tokens: []string{"resourceClaims"}})
	for _, claim := range claims {
		if there, _ := ofPod.find(claim.key); there == nil {
			f.refuse(nil, t.of(claim), fmt.Sprintf("the pod has no resource claim %s, which container %s gets", claim.key, t.name))
		}
	}
}

// host: a user namespace of its own, or a shared process namespace, excludes namespaces
// of the host, and the former excludes devices.
func (f *finished) host() {
	spec := &f.pod.spec
	users, by := spec.final("hostUsers")
	if by != nil && string(users) == "false" {
		for _, name := range []string{"hostNetwork", "hostPID", "hostIPC"} {
			if string(spec.member(name)) == "true" {
				f.refuse(nil, by, "hostUsers is false, and "+name+" is true")
			}
		}
	}
	if string(users) == "false" {
		for t := range f.containers() {
			if devices := t.all(deviceKind, "volumeDevices"); len(devices) > 0 {
				f.refuse(by, t.of(devices[len(devices)-1]), "hostUsers is false, and container "+t.name+" has volumeDevices")
			}
		}
	}
	if shared, by := spec.final("shareProcessNamespace"); by != nil && string(shared) == "true" && string(spec.member("hostPID")) == "true" {
		f.refuse(nil, by, "shareProcessNamespace and hostPID are true")
	}
}

// gates: a pod with a node was scheduled.
func (f *finished) gates() {
	if node := f.pod.spec.member("nodeName"); node == nil || string(node) == `""` {
		return
	}
	for _, gate := range f.pod.spec.all(gateKind, "schedulingGates") {
		if gate.origin != nil {
			f.refuse(nil, gate.origin, "the pod has a nodeName, and gets the schedulingGate "+gate.key)
		}
	}
}

// nameservers: without cluster DNS there must be one.
func (f *finished) nameservers() {
	policy, by := f.pod.spec.final("dnsPolicy")
	if by != nil && string(policy) == `"None"` && len(f.pod.spec.all(nameserverKind, "dnsConfig", "nameservers")) == 0 {
		f.refuse(nil, by, "dnsPolicy is None, and dnsConfig has no nameservers")
	}
}

// atMost limits the elements of a list of the pod.
func (f *finished) atMost(most int, kind *listKind, tokens ...string) {
	all := f.pod.spec.all(kind, tokens...)
	if len(all) <= most {
		return
	}
	var first, last *Compiled
	for _, w := range all {
		if last = w.origin; first == nil {
			first = w.origin
		}
	}
	f.refuse(first, last, fmt.Sprintf("%s has %d elements, and at most %d are allowed", strings.Join(tokens, "."), len(all), most))
}
