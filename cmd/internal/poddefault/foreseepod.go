// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// More rules of a pod and additions together, as in foresee.go: those of its operating system, of
// privileges and of its figures.

// mayClashWithPod reports whether the object has anything that the rules of this file concern.
func (c *Compiled) mayClashWithPod() bool {
	ofPod := []string{"securityContext", "terminationGracePeriodSeconds"}
	ofContainer := []string{"securityContext", "lifecycle"}
	of := func(tokens []string) func(fieldValue) bool {
		return func(f fieldValue) bool { return slices.Contains(tokens, f.tokens[0]) }
	}
	lists := []*listKind{sysctlKind, groupKind, capabilityAddKind, capabilityDropKind}
	of2 := func(l fieldList) bool { return slices.Contains(lists, l.kind) }
	propagates := func(w item) bool { return bytes.Contains(w.value, []byte(`"mountPropagation"`)) }
	return len(c.containers)+len(c.initContainers) > 0 ||
		slices.ContainsFunc(c.podValues, of(ofPod)) || slices.ContainsFunc(c.containerValues, of(ofContainer)) ||
		slices.ContainsFunc(c.podLists, of2) || slices.ContainsFunc(c.containerLists, of2) || slices.ContainsFunc(c.volumeMounts, propagates)
}

// foreseePod denies what the API server would refuse because of the rest of the pod.
func (f *finished) foreseePod() {
	f.operatingSystem()
	f.sysctls()
	users, _ := f.pod.spec.final("hostUsers")
	for t := range f.containers() {
		f.propagation(t)
		f.sleep(t)
		if mask, by := t.final("securityContext", "procMount"); string(mask) == `"Unmasked"` && string(users) != "false" {
			f.refuse(nil, or(by, t.origin), "container "+t.name+" has procMount Unmasked, and hostUsers is not false")
		}
	}
}

func or(a, b *Compiled) *Compiled {
	if a != nil {
		return a
	}
	return b
}

// What pods of an operating system must not have: validateWindows and validateLinux.
var (
	notOfWindowsPods       = []string{"appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy", "runAsUser", "runAsGroup", "supplementalGroupsPolicy"}
	notOfWindowsContainers = []string{"appArmorProfile", "seLinuxOptions", "seccompProfile", "readOnlyRootFilesystem", "privileged", "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup"}
	onlyOfWindows          = []string{"windowsOptions"}
)

// operatingSystem: no field of another operating system than the pod's.
func (f *finished) operatingSystem() {
	raw, _ := f.pod.spec.lookup("os", "name")
	os := string(text(raw))
	var ofPod, ofContainers []string
	switch os {
	case string(corev1.Windows):
		ofPod, ofContainers = notOfWindowsPods, notOfWindowsContainers
	case string(corev1.Linux):
		ofPod, ofContainers = onlyOfWindows, onlyOfWindows
	default:
		return
	}
	refuse := func(by *Compiled, what string) { f.refuse(nil, by, what+" is not for a pod of "+os) }
	for _, name := range ofPod {
		if value, by := f.pod.spec.final("securityContext", name); by != nil && value.Kind() != 'n' {
			refuse(by, "securityContext."+name)
		}
	}
	if os == string(corev1.Windows) {
		for _, list := range []struct {
			kind *listKind
			name string
		}{{sysctlKind, "sysctls"}, {groupKind, "supplementalGroups"}} {
			if by := lastOrigin(f.pod.spec.all(list.kind, "securityContext", list.name)); by != nil {
				refuse(by, "securityContext."+list.name)
			}
		}
		if shared, by := f.pod.spec.final("shareProcessNamespace"); by != nil && string(shared) == "true" {
			refuse(by, "shareProcessNamespace")
		}
	}
	for t := range f.containers() {
		for _, name := range ofContainers {
			if value, by := t.final("securityContext", name); or(by, t.origin) != nil && len(value) > 0 && value.Kind() != 'n' {
				refuse(or(by, t.origin), "securityContext."+name+" of container "+t.name)
			}
		}
		if os == string(corev1.Windows) {
			by := lastOrigin(append(t.all(capabilityAddKind, "securityContext", "capabilities", "add"), t.all(capabilityDropKind, "securityContext", "capabilities", "drop")...))
			if by != nil {
				refuse(by, "securityContext.capabilities of container "+t.name)
			}
		}
	}
}

func lastOrigin(items []item) *Compiled {
	for _, w := range slices.Backward(items) {
		if w.origin != nil {
			return w.origin
		}
	}
	return nil
}

// sysctls: none of a namespace that the pod shares with the host.
func (f *finished) sysctls() {
	for _, sysctl := range f.pod.spec.all(sysctlKind, "securityContext", "sysctls") {
		if sysctl.origin == nil {
			continue
		}
		name := strings.ReplaceAll(sysctl.key, "/", ".")
		for prefix, shared := range map[string]string{"net.": "hostNetwork", "kernel.shm": "hostIPC", "kernel.msg": "hostIPC", "kernel.sem": "hostIPC", "fs.mqueue.": "hostIPC"} {
			if strings.HasPrefix(name, prefix) && string(f.pod.spec.member(shared)) == "true" {
				f.refuse(nil, sysctl.origin, "the sysctl "+sysctl.key+" is not for a pod with "+shared)
			}
		}
	}
}

// propagation: mounts to the host are for privileged containers.
func (f *finished) propagation(t *container) {
	privileged, by := t.final("securityContext", "privileged")
	if string(privileged) == "true" {
		return
	}
	for _, mount := range t.volumeMounts.all() {
		if string(memberText("mountPropagation")(mount.value)) == string(corev1.MountPropagationBidirectional) {
			f.refuse(by, t.of(mount), "the mount "+mount.key+" of container "+t.name+" is Bidirectional, and the container is not privileged")
		}
	}
}

// sleep: a hook must not sleep longer than the pod may take to end.
func (f *finished) sleep(t *container) {
	hook, by := t.final("lifecycle", "preStop")
	seconds, err := strconv.ParseInt(string(member(memberOf(hook, "sleep"), "seconds")), 10, 64)
	if err != nil {
		return
	}
	grace, other := f.pod.spec.final("terminationGracePeriodSeconds")
	most := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if n, err := strconv.ParseInt(string(grace), 10, 64); err == nil {
		most = n
	}
	if seconds > most {
		f.refuse(or(by, t.origin), other, "preStop of container "+t.name+" sleeps longer than terminationGracePeriodSeconds")
	}
}

func memberOf(object jsontext.Value, name string) jsontext.Value {
	if object.Kind() != '{' {
		return nil
	}
	return member(object, name)
}

// podLevel: containers together must not request more than their pod, and none may have a limit beyond
// that of the pod.
func (f *finished) podLevel() {
	if limits, requests := memberOf(f.pod.spec.member("resources"), "limits"), memberOf(f.pod.spec.member("resources"), "requests"); limits == nil && requests == nil {
		return
	}
	for _, name := range []string{string(corev1.ResourceCPU), string(corev1.ResourceMemory)} {
		limit, limited := f.pod.spec.quantity("limits", name)
		request, requested := f.pod.spec.quantity("requests", name)
		var running, starting, peak resource.Quantity // of containers, of sidecars so far, and of init containers
		var by *Compiled
		for t := range f.containers() {
			origin := func(list string) *Compiled {
				if set := t.value([]string{"resources", list, name}); set != nil && !set.there {
					return set.origin
				}
				return t.origin
			}
			if q, ok := t.quantity("limits", name); ok && limited && q.Cmp(limit) > 0 {
				f.refuse(nil, origin("limits"), fmt.Sprintf("the limit of %s of container %s is larger than the pod's", name, t.name))
			}
			q, ok := t.quantity("requests", name)
			if !ok {
				if q, ok = t.quantity("limits", name); !ok { // the API server's default
					continue
				}
			}
			by = or(origin("requests"), or(origin("limits"), by))
			switch {
			case !t.init, t.native():
				running.Add(q)
				if t.init {
					starting.Add(q)
				}
			default:
				q.Add(starting)
				if q.Cmp(peak) > 0 {
					peak = q
				}
			}
		}
		if running.Cmp(peak) > 0 {
			peak = running
		}
		if requested && peak.Cmp(request) > 0 {
			f.refuse(nil, by, fmt.Sprintf("the containers request more %s than the pod", name))
		}
	}
}
