// SPDX-License-Identifier: Apache-2.0

// Package check knows rules of the API server that a pod and plans can only break together.
//
// In goes a finished pod; out come combinations that the API server would refuse, each with the plans
// that are at fault. It decides nothing.
package check

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podstate"
)

// Finished is a pod after all objects, of which rules are checked.
type Finished struct {
	Pod     *podstate.Pod
	Applied []*plan.Plan
	Fresh   []*podstate.Container // containers of objects
	// Refuse is called with what the API server would refuse because of two objects, of which
	// nil is the pod.
	Refuse func(a, b *plan.Plan, what string)
}

// Check reports what the API server would refuse.
func (f *Finished) Check() {
	if slices.ContainsFunc(f.Applied, func(c *plan.Plan) bool { return len(c.Resources)+len(c.Containers)+len(c.InitContainers) > 0 }) {
		f.podLevel()
	}
	if !slices.ContainsFunc(f.Applied, func(c *plan.Plan) bool { return c.Clashes }) && !f.besideDevices() {
		return
	}
	var running []*podstate.Container // those of spec.containers
	for t := range f.containers() {
		f.portNames(t)
		f.devices(t)
		f.escalation(t)
		f.figures(t)
		f.claims(t)
		if !t.Init {
			running = append(running, t)
		}
	}
	f.hostPorts(running)
	f.host()
	f.gates()
	f.nameservers()
	f.atMost(3, plan.NameserverKind, "dnsConfig", "nameservers")
	f.atMost(32, plan.SearchKind, "dnsConfig", "searches")
	f.foreseePod()
}

// besideDevices reports whether objects bring volumes or mounts to a pod that has devices, which are
// volumes too.
func (f *Finished) besideDevices() bool {
	has := func(t podstate.Container) bool { return t.Devices }
	return (slices.ContainsFunc(f.Pod.App, has) || slices.ContainsFunc(f.Pod.Init, has)) &&
		slices.ContainsFunc(f.Applied, func(c *plan.Plan) bool { return len(c.Volumes)+len(c.VolumeMounts) > 0 })
}

// containers yields all containers of the final pod: its own, except replaced ones, and
// those that PodDefaults add.
func (f *Finished) containers() iter.Seq[*podstate.Container] {
	return func(yield func(*podstate.Container) bool) {
		for _, containers := range [][]podstate.Container{f.Pod.App, f.Pod.Init} {
			for i := range containers {
				if containers[i].Origin == nil && !yield(&containers[i]) { // those with an origin are replaced
					return
				}
			}
		}
		for _, fresh := range f.Fresh {
			if !yield(fresh) {
				return
			}
		}
	}
}

// earlier reports whether a comes before b in order of application; nil is the pod.
func earlier(a, b *plan.Plan) bool {
	return b != nil && (a == nil || plan.InOrder(a, b) < 0)
}

// hostPorts: unique by protocol and address across concurrently running containers.
func (f *Finished) hostPorts(running []*podstate.Container) {
	hostNetwork := string(f.Pod.Spec.Member("hostNetwork")) == "true"
	type taker struct {
		container string
		by        *plan.Plan
		reported  bool
	}
	takers := map[string]*taker{}
	for _, t := range running {
		for _, port := range t.All(plan.PortKind, "ports") {
			number := string(plan.Member(port.Value, "hostPort"))
			if hostNetwork && (number == "" || number == "0") { // the API server's default
				number = string(plan.Member(port.Value, "containerPort"))
			}
			if number == "" || number == "0" {
				continue
			}
			_, protocol, _ := strings.Cut(port.Key, "/")
			key := protocol + "/" + string(plan.MemberText("hostIP")(port.Value)) + "/" + number
			if first := takers[key]; first == nil {
				takers[key] = &taker{t.Name, t.Since(port.Origin), false}
			} else if !first.reported {
				first.reported = first.by != nil || t.Since(port.Origin) != nil
				f.Refuse(first.by, t.Since(port.Origin), fmt.Sprintf("hostPort %s is taken by the containers %s and %s", number, first.container, t.Name))
			}
		}
	}
}

// portNames: unique within a container.
func (f *Finished) portNames(t *podstate.Container) {
	named := map[string]plan.Item{}
	for _, port := range t.All(plan.PortKind, "ports") {
		name := string(plan.MemberText("name")(port.Value))
		if name == "" {
			continue
		}
		if other, taken := named[name]; taken {
			f.Refuse(t.Since(other.Origin), t.Since(port.Origin), fmt.Sprintf("the ports %s and %s of container %s have the same name", other.Key, port.Key, t.Name))
			return
		}
		named[name] = port
	}
}

// devices: volumes of claims that are not also mounted, at unique paths.
func (f *Finished) devices(t *podstate.Container) {
	devices := t.All(plan.DeviceKind, "volumeDevices")
	if len(devices) == 0 {
		return
	}
	paths, mounted := map[string]plan.Item{}, map[string]plan.Item{} // mounts by path, and the first by volume
	for _, mount := range t.VolumeMounts.All() {
		paths[mount.Key] = mount
		name := string(plan.MemberText("name")(mount.Value))
		if known, twice := mounted[name]; !twice || earlier(t.Since(mount.Origin), t.Since(known.Origin)) {
			mounted[name] = mount
		}
	}
	attached := map[string]plan.Item{}
	for _, device := range devices {
		name := string(plan.MemberText("name")(device.Value))
		if other, twice := attached[name]; twice {
			f.Refuse(t.Since(other.Origin), t.Since(device.Origin), fmt.Sprintf("the volume %s has two device paths in container %s", name, t.Name))
		} else {
			attached[name] = device
		}
		mount, too := paths[device.Key]
		if other, also := mounted[name]; also && (!too || earlier(t.Since(other.Origin), t.Since(mount.Origin))) {
			mount, too = other, true
		}
		if too {
			f.Refuse(t.Since(mount.Origin), t.Since(device.Origin), fmt.Sprintf("the device %s of container %s is a mount too, by its path or by its volume", device.Key, t.Name))
		}
		if volume, _ := f.Pod.Volumes.Find(name); volume != nil && !ofClaim(volume.Value) {
			since := volume.Origin
			if original := f.Pod.Volumes.Original(name); original != nil && !ofClaim(original) {
				since = nil // whatever has replaced it
			}
			f.Refuse(since, t.Since(device.Origin), fmt.Sprintf("the volume %s of the device %s of container %s is of no claim", name, device.Key, t.Name))
		}
	}
}

// ofClaim reports whether a volume may be a device.
func ofClaim(volume jsontext.Value) bool {
	return plan.Member(volume, "persistentVolumeClaim") != nil || plan.Member(volume, "ephemeral") != nil
}

// escalation: a container that is privileged, or nearly so, must allow privilege escalation.
func (f *Finished) escalation(t *podstate.Container) {
	escalation, by := t.Final("securityContext", "allowPrivilegeEscalation")
	if string(escalation) != "false" {
		return
	}
	by = t.Since(by)
	if privileged, other := t.Final("securityContext", "privileged"); string(privileged) == "true" {
		f.Refuse(t.Since(other), by, fmt.Sprintf("container %s is privileged, and allowPrivilegeEscalation is false", t.Name))
	}
	for _, capability := range t.All(plan.CapabilityAddKind, "securityContext", "capabilities", "add") {
		if capability.Key == "CAP_SYS_ADMIN" {
			f.Refuse(by, t.Since(capability.Origin), fmt.Sprintf("container %s adds the capability CAP_SYS_ADMIN, and allowPrivilegeEscalation is false", t.Name))
		}
	}
}

// figures: for resources that cannot be overcommitted, the request equals the limit. At fault is the
// object that set the later of the two.
func (f *Finished) figures(t *podstate.Container) {
	var reported meta.NameSet
	for _, set := range t.Values {
		if set.Tokens[0] != "resources" || set.There || !plan.Whole(set.Tokens[2]) || reported.Has(set.Tokens[2]) {
			continue
		}
		request, requested := t.Quantity("requests", set.Tokens[2])
		limit, limited := t.Quantity("limits", set.Tokens[2])
		if requested && (!limited || request.Cmp(limit) != 0) {
			reported.Add(set.Tokens[2])
			f.Refuse(t.SinceQuantity("requests", set.Tokens[2]), t.SinceQuantity("limits", set.Tokens[2]),
				fmt.Sprintf("request and limit of %s of container %s are not the same", set.Tokens[2], t.Name))
		}
	}
}

// claims: containers may only use claims of the pod.
func (f *Finished) claims(t *podstate.Container) {
	claims := t.All(plan.ClaimKind, "resources", "claims")
	if len(claims) == 0 {
		return
	}
	ofPod := f.Pod.Spec.List(&plan.FieldList{Kind: plan.PodClaimKind, Tokens: []string{"resourceClaims"}})
	for _, claim := range claims {
		if there, _ := ofPod.Find(claim.Key); there == nil {
			f.Refuse(claim.Origin, t.Since(claim.Origin), fmt.Sprintf("the pod has no resource claim %s, which container %s gets", claim.Key, t.Name))
		}
	}
}

// host: a user namespace of its own, or a shared process namespace, excludes namespaces
// of the host, and the former excludes devices.
func (f *Finished) host() {
	spec := &f.Pod.Spec
	users, by := spec.Final("hostUsers")
	if by != nil && string(users) == "false" {
		for _, name := range []string{"hostNetwork", "hostPID", "hostIPC"} {
			if string(spec.Member(name)) == "true" {
				f.Refuse(nil, by, "hostUsers is false, and "+name+" is true")
			}
		}
	}
	if string(users) == "false" {
		for t := range f.containers() {
			if devices := t.All(plan.DeviceKind, "volumeDevices"); len(devices) > 0 {
				f.Refuse(by, t.Since(devices[len(devices)-1].Origin), "hostUsers is false, and container "+t.Name+" has volumeDevices")
			}
		}
	}
	if shared, by := spec.Final("shareProcessNamespace"); by != nil && string(shared) == "true" && string(spec.Member("hostPID")) == "true" {
		f.Refuse(nil, by, "shareProcessNamespace and hostPID are true")
	}
}

// gates: a pod with a node was scheduled.
func (f *Finished) gates() {
	if node := f.Pod.Spec.Member("nodeName"); node == nil || string(node) == `""` {
		return
	}
	for _, gate := range f.Pod.Spec.All(plan.GateKind, "schedulingGates") {
		if gate.Origin != nil {
			f.Refuse(nil, gate.Origin, "the pod has a nodeName, and gets the schedulingGate "+gate.Key)
		}
	}
}

// nameservers: without cluster DNS there must be one.
func (f *Finished) nameservers() {
	policy, by := f.Pod.Spec.Final("dnsPolicy")
	if by != nil && string(policy) == `"None"` && len(f.Pod.Spec.All(plan.NameserverKind, "dnsConfig", "nameservers")) == 0 {
		f.Refuse(nil, by, "dnsPolicy is None, and dnsConfig has no nameservers")
	}
}

// atMost limits the elements of a list of the pod.
func (f *Finished) atMost(most int, kind *plan.ListKind, tokens ...string) {
	all := f.Pod.Spec.All(kind, tokens...)
	if len(all) <= most {
		return
	}
	var first, last *plan.Plan
	for _, w := range all {
		if last = w.Origin; first == nil {
			first = w.Origin
		}
	}
	f.Refuse(first, last, fmt.Sprintf("%s has %d elements, and at most %d are allowed", strings.Join(tokens, "."), len(all), most))
}
