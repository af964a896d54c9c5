// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podstate"
)

// foreseePod denies what the API server would refuse because of the rest of the pod.
func (f *Finished) foreseePod() {
	f.operatingSystem()
	f.sysctls()
	users, _ := f.Pod.Spec.Final("hostUsers")
	for t := range f.containers() {
		f.propagation(t)
		f.sleep(t)
		if mask, by := t.Final("securityContext", "procMount"); string(mask) == `"Unmasked"` && string(users) != "false" {
			f.Refuse(nil, t.Since(by), "container "+t.Name+" has procMount Unmasked, and hostUsers is not false")
		}
	}
}

func or(a, b *plan.Plan) *plan.Plan {
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
func (f *Finished) operatingSystem() {
	raw, _ := f.Pod.Spec.Lookup("os", "name")
	os := string(plan.Text(raw))
	var ofPod, ofContainers []string
	switch os {
	case string(corev1.Windows):
		ofPod, ofContainers = notOfWindowsPods, notOfWindowsContainers
	case string(corev1.Linux):
		ofPod, ofContainers = onlyOfWindows, onlyOfWindows
	default:
		return
	}
	refuse := func(by *plan.Plan, what string) { f.Refuse(nil, by, what+" is not for a pod of "+os) }
	for _, name := range ofPod {
		if value, by := f.Pod.Spec.Final("securityContext", name); by != nil && value.Kind() != 'n' {
			refuse(by, "securityContext."+name)
		}
	}
	if os == string(corev1.Windows) {
		for _, list := range []struct {
			kind *plan.ListKind
			name string
		}{{plan.SysctlKind, "sysctls"}, {plan.GroupKind, "supplementalGroups"}} {
			if by := lastOrigin(f.Pod.Spec.All(list.kind, "securityContext", list.name)); by != nil {
				refuse(by, "securityContext."+list.name)
			}
		}
		if shared, by := f.Pod.Spec.Final("shareProcessNamespace"); by != nil && string(shared) == "true" {
			refuse(by, "shareProcessNamespace")
		}
	}
	for t := range f.containers() {
		for _, name := range ofContainers {
			if value, by := t.Final("securityContext", name); t.Since(by) != nil && len(value) > 0 && value.Kind() != 'n' {
				refuse(t.Since(by), "securityContext."+name+" of container "+t.Name)
			}
		}
		if os == string(corev1.Windows) {
			by := lastOrigin(append(t.All(plan.CapabilityAddKind, "securityContext", "capabilities", "add"), t.All(plan.CapabilityDropKind, "securityContext", "capabilities", "drop")...))
			if by != nil {
				refuse(by, "securityContext.capabilities of container "+t.Name)
			}
		}
	}
}

func lastOrigin(items []plan.Item) *plan.Plan {
	for _, w := range slices.Backward(items) {
		if w.Origin != nil {
			return w.Origin
		}
	}
	return nil
}

// sysctls: none of a namespace that the pod shares with the host.
func (f *Finished) sysctls() {
	for _, sysctl := range f.Pod.Spec.All(plan.SysctlKind, "securityContext", "sysctls") {
		if sysctl.Origin == nil {
			continue
		}
		name := strings.ReplaceAll(sysctl.Key, "/", ".")
		for prefix, shared := range map[string]string{"net.": "hostNetwork", "kernel.shm": "hostIPC", "kernel.msg": "hostIPC", "kernel.sem": "hostIPC", "fs.mqueue.": "hostIPC"} {
			if strings.HasPrefix(name, prefix) && string(f.Pod.Spec.Member(shared)) == "true" {
				f.Refuse(nil, sysctl.Origin, "the sysctl "+sysctl.Key+" is not for a pod with "+shared)
			}
		}
	}
}

// propagation: mounts to the host are for privileged containers.
func (f *Finished) propagation(t *podstate.Container) {
	privileged, by := t.Final("securityContext", "privileged")
	if string(privileged) == "true" {
		return
	}
	for _, mount := range t.VolumeMounts.All() {
		if string(plan.MemberText("mountPropagation")(mount.Value)) == string(corev1.MountPropagationBidirectional) {
			f.Refuse(by, t.Since(mount.Origin), "the mount "+mount.Key+" of container "+t.Name+" is Bidirectional, and the container is not privileged")
		}
	}
}

// sleep: a hook must not sleep longer than the pod may take to end.
func (f *Finished) sleep(t *podstate.Container) {
	hook, by := t.Final("lifecycle", "preStop")
	seconds, err := strconv.ParseInt(string(plan.Member(memberOf(hook, "sleep"), "seconds")), 10, 64)
	if err != nil {
		return
	}
	grace, other := f.Pod.Spec.Final("terminationGracePeriodSeconds")
	most := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if n, err := strconv.ParseInt(string(grace), 10, 64); err == nil {
		most = n
	}
	if seconds > most {
		f.Refuse(t.Since(by), other, "preStop of container "+t.Name+" sleeps longer than terminationGracePeriodSeconds")
	}
}

func memberOf(object jsontext.Value, name string) jsontext.Value {
	if object.Kind() != '{' {
		return nil
	}
	return plan.Member(object, name)
}

// podLevel: containers together must not request more than their pod, and none may have a limit beyond
// that of the pod.
func (f *Finished) podLevel() {
	if limits, requests := memberOf(f.Pod.Spec.Member("resources"), "limits"), memberOf(f.Pod.Spec.Member("resources"), "requests"); limits == nil && requests == nil {
		return
	}
	for _, name := range []string{string(corev1.ResourceCPU), string(corev1.ResourceMemory)} {
		limit, limited := f.Pod.Spec.Quantity("limits", name)
		request, requested := f.Pod.Spec.Quantity("requests", name)
		var running, starting, peak resource.Quantity // of containers, of sidecars so far, and of init containers
		var by *plan.Plan
		for t := range f.containers() {
			if q, ok := t.Quantity("limits", name); ok && limited && q.Cmp(limit) > 0 {
				f.Refuse(nil, t.SinceQuantity("limits", name), fmt.Sprintf("the limit of %s of container %s is larger than the pod's", name, t.Name))
			}
			q, ok := t.Quantity("requests", name)
			if !ok {
				if q, ok = t.Quantity("limits", name); !ok { // the API server's default
					continue
				}
			}
			by = or(t.SinceQuantity("requests", name), or(t.SinceQuantity("limits", name), by))
			switch {
			case !t.Init, t.Native():
				running.Add(q)
				if t.Init {
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
			f.Refuse(nil, by, fmt.Sprintf("the containers request more %s than the pod", name))
		}
	}
}
