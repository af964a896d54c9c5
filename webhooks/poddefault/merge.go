// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A merge brings PodDefaults into one pod. It changes nothing before all of them
// are merged: either no conflict is left and the whole is emitted, or the pod is
// denied as a whole.
type merge struct {
	pod      *pod
	settings *Settings

	applied []*Compiled // in the order of application
	invalid []*Compiled // chosen, but they can never work in this pod

	labels, annotations map[string]setEntry
	entries             []setEntry // what was added to both, in order

	serviceAccount *setting[string]
	automount      *setting[bool]
	commands, args []setCommand
	seconds        []setSeconds

	injected  []string // names of the containers that PodDefaults bring
	conflicts []string
	warnings  []string
}

// A setting is a scalar of the pod that a PodDefault sets.
type setting[T any] struct {
	value  T
	origin *Compiled
}

type setEntry struct {
	field  string // labels or annotations
	entry  entry
	origin *Compiled
}

type setCommand struct {
	container *container
	value     jsontext.Value
	origin    *Compiled
}

// setSeconds is a toleration of the pod whose tolerationSeconds change.
type setSeconds struct {
	index  int
	value  jsontext.Value // nil: tolerate for good
	origin *Compiled
}

// mergeAll merges the chosen PodDefaults in their order.
func mergeAll(p *pod, chosen []*Compiled, settings *Settings) *merge {
	m := &merge{pod: p, settings: settings}
	m.applied, m.invalid = usable(p, chosen)
	for _, c := range m.applied {
		for _, list := range [][]item{c.containers, c.initContainers} {
			for _, added := range list {
				m.injected = append(m.injected, added.key)
			}
		}
	}
	for _, c := range m.applied {
		m.apply(c)
	}
	for _, c := range m.invalid {
		reason := "a volume that it mounts exists neither there nor in the pod"
		if c.problem != nil {
			reason = strings.ReplaceAll(c.problem.Error(), "\n", "; ")
		}
		m.warn("%s was not applied: %s", c, reason)
	}
	return m
}

// usable leaves out PodDefaults that can never work: those with a problem of
// their own, and those that mount a volume which neither the pod nor any of the
// others has. The API server would refuse the pod because of them.
func usable(p *pod, chosen []*Compiled) (applied, invalid []*Compiled) {
	applied = slices.DeleteFunc(slices.Clone(chosen), func(c *Compiled) bool { return c.problem != nil })
	for {
		dangling := func(c *Compiled) bool {
			return slices.ContainsFunc(c.strayMounts, func(volume string) bool {
				if other, _ := p.volumes.find(volume); other != nil {
					return false
				}
				return !slices.ContainsFunc(applied, func(c *Compiled) bool {
					return slices.ContainsFunc(c.volumes, func(v item) bool { return v.key == volume })
				})
			})
		}
		i := slices.IndexFunc(applied, dangling)
		if i < 0 {
			break
		}
		applied = slices.Delete(applied, i, i+1)
	}
	for _, c := range chosen {
		if !slices.Contains(applied, c) {
			invalid = append(invalid, c)
		}
	}
	return applied, invalid
}

func (m *merge) apply(c *Compiled) {
	p := m.pod
	for _, l := range c.labels {
		m.setEntry(&m.labels, "labels", p.metadata.labels, l, c)
	}
	for _, a := range c.annotations {
		m.setEntry(&m.annotations, "annotations", p.metadata.annotations, a, c)
	}
	m.add(&p.volumes, c.volumes, "")
	for _, wanted := range c.tolerations {
		m.addToleration(wanted)
	}
	m.add(&p.pullSecrets, c.pullSecrets, "")
	m.addContainers(&p.initContainers, &p.containers, c.initContainers)
	m.addContainers(&p.containers, &p.initContainers, c.containers)
	for i := range p.app {
		m.applyTo(&p.app[i], c)
	}
	m.setServiceAccount(c)
	m.setAutomount(c)
}

// applyTo merges what goes into containers. A container that a PodDefault brings
// gets none of it, whether it was in the pod before or not: otherwise the same
// pod, sent again, would get more than the first time.
func (m *merge) applyTo(target *container, c *Compiled) {
	if slices.Contains(m.injected, target.name) {
		return
	}
	if !slices.Contains(m.settings.MeshContainers, target.name) {
		m.add(&target.env, c.env, target.name)
		m.add(&target.envFrom, c.envFrom, target.name)
		for _, mount := range c.volumeMounts {
			m.warnOfSlash(target, mount)
		}
		m.add(&target.volumeMounts, c.volumeMounts, target.name)
	}
	if !slices.Contains(m.settings.CommandExcluded, target.name) {
		if !target.command {
			m.commands = m.setCommand(m.commands, "command", target, c.command, c)
		}
		if !target.args {
			m.args = m.setCommand(m.args, "args", target, c.args, c)
		}
	}
}

func (m *merge) add(l *list, wanted []item, container string) {
	for _, w := range wanted {
		if other, differences := l.add(w); other != nil {
			m.conflict(w, other, l.kind, container, differences)
		}
	}
}

// addContainers merges init containers or sidecars; names are unique across both
// lists of a pod.
func (m *merge) addContainers(to, beside *list, wanted []item) {
	for _, w := range wanted {
		if other, _ := beside.find(w.key); other != nil {
			m.conflicts = append(m.conflicts, fmt.Sprintf("%s: container %s has the name of %s; choose another name",
				w.origin, w.key, m.holder(other, "one in "+strings.ReplaceAll(beside.path()[1:], "/", "."))))
			continue
		}
		m.add(to, []item{w}, "")
	}
}

// addToleration merges a toleration. Its tolerationSeconds are a payload, not a
// part of what it is: the PodDefault's replace the pod's. So may those be tuned
// that the DefaultTolerationSeconds plugin has added to every pod by then.
func (m *merge) addToleration(w item) {
	l := &m.pod.tolerations
	other, differences := l.add(w)
	if other == nil {
		return
	}
	if other.origin != nil {
		m.conflict(w, other, l.kind, "", differences)
		return
	}
	_, index := l.find(w.key)
	seconds := member(w.value, "tolerationSeconds")
	for _, earlier := range m.seconds {
		if earlier.index == index {
			if string(earlier.value) != string(seconds) {
				m.conflict(w, &item{origin: earlier.origin}, l.kind, "", differences)
			}
			return
		}
	}
	if string(member(other.value, "tolerationSeconds")) != "300" {
		m.warn("%s set the tolerationSeconds of the pod's toleration %s", w.origin, w.key)
	}
	m.seconds = append(m.seconds, setSeconds{index, seconds, w.origin})
}

func (m *merge) setEntry(set *map[string]setEntry, field string, present Labels, wanted entry, c *Compiled) {
	if value, ok := present.Lookup(wanted.key); ok {
		if value != wanted.value {
			m.conflictOn(field, wanted.key, c, "the pod")
		}
		return
	}
	if earlier, ok := (*set)[wanted.key]; ok {
		if earlier.entry.value != wanted.value {
			m.conflictOn(field, wanted.key, c, earlier.origin.String())
		}
		return
	}
	if *set == nil {
		*set = map[string]setEntry{}
	}
	added := setEntry{field, wanted, c}
	(*set)[wanted.key] = added
	m.entries = append(m.entries, added)
}

// setCommand sets command or args of a container that has none; the first
// PodDefault wins.
func (m *merge) setCommand(set []setCommand, field string, target *container, value jsontext.Value, c *Compiled) []setCommand {
	if value == nil {
		return set
	}
	for _, earlier := range set {
		if earlier.container == target {
			if string(earlier.value) != string(value) {
				m.warn("%s did not set %s of container %s: %s did before", c, field, target.name, earlier.origin)
			}
			return set
		}
	}
	return append(set, setCommand{target, value, c})
}

// setServiceAccount overwrites what the pod has; the last PodDefault wins.
func (m *merge) setServiceAccount(c *Compiled) {
	if c.serviceAccountName == "" {
		return
	}
	if earlier := m.serviceAccount; earlier != nil && earlier.value != c.serviceAccountName {
		m.warn("%s set serviceAccountName over that of %s", c, earlier.origin)
	}
	m.serviceAccount = &setting[string]{c.serviceAccountName, c}
}

// setAutomount overwrites what the pod has; the last PodDefault wins.
func (m *merge) setAutomount(c *Compiled) {
	if c.automountToken == nil {
		return
	}
	if earlier := m.automount; earlier != nil && earlier.value != *c.automountToken {
		m.warn("%s set automountServiceAccountToken over that of %s", c, earlier.origin)
	}
	m.automount = &setting[bool]{*c.automountToken, c}
}

// warnOfSlash tells of mount paths that Kubernetes takes for two and a container
// for one.
func (m *merge) warnOfSlash(target *container, mount item) {
	twin := strings.TrimSuffix(mount.key, "/")
	if twin == mount.key {
		twin += "/"
	}
	if other, _ := target.volumeMounts.find(twin); other != nil {
		m.warn("%s: mountPath %s of container %s differs only by a slash from that of %s",
			mount.origin, mount.key, target.name, m.holder(other, "the pod"))
	}
}

func (m *merge) warn(format string, args ...any) {
	m.warnings = append(m.warnings, fmt.Sprintf(format, args...))
}

// holder names who brought an element: a PodDefault, or else pod.
func (m *merge) holder(other *item, pod string) string {
	if other.origin != nil {
		return other.origin.String()
	}
	return pod
}
