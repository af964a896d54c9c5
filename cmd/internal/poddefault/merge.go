// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// A merge applies PodDefaults to one pod. It changes nothing until all of them are
// merged. If there is no conflict it emits everything, otherwise the whole pod is
// denied.
type merge struct {
	pod       *pod
	leftAlone *LeftAlone

	applied  []*Compiled // in the order of application
	index    int         // of the current object
	dropped  *conflict   // the first conflict because of which an object is to be skipped
	unfilled []*Compiled // with placeholders for which there is no value
	invalid  []*Compiled // chosen, but cannot work in this pod
	passed   []*Compiled // applied to nothing, because of a mesh
	skipped  []skip
	audited  []*Compiled
	outside  []*Compiled // see [match]

	namespace           string
	labels, annotations map[string]int // positions in entries by key
	entries             []setEntry     // added labels and annotations, in order

	seconds     []setSeconds
	setByNow    map[int]int          // positions in seconds by toleration index
	overriders  map[place][]override // built on demand, see [merge.replacedSince]
	limitRanges map[string]bool      // see [merge.limitRanged]

	mesh          []string     // containers left alone because they are a mesh's
	injected      nameSet      // names of containers added by PodDefaults
	fresh         []*container // added containers that the pod does not have
	leftOut       nameSet      // names of containers of skipped objects
	firsts        map[*Compiled]*container
	conflicts     []conflict
	atOdds        map[[2]*Compiled]bool // pairs with a conflict, once there are many
	moreConflicts int
	warnings      []string
	untold        int // number of warnings beyond the limit
	excess        *excess
}

// setSeconds is a toleration of the pod whose tolerationSeconds a PodDefault sets.
type setSeconds struct {
	index  int
	value  jsontext.Value // nil: tolerate forever
	there  bool           // unchanged
	origin *Compiled
}

// mergeAll tries the matched objects, except skipped ones, one after the other. It stops at
// the first that is to be dropped: see [merge.dropped].
func mergeAll(p *pod, chosen match, skipped []skip, leftAlone *LeftAlone) *merge {
	m := &merge{pod: p, leftAlone: leftAlone, outside: chosen.outside, skipped: skipped, namespace: chosen.namespace}
	candidates := chosen.objects
	if chosen.audits || len(skipped) > 0 {
		candidates = make([]*Compiled, 0, len(chosen.objects))
		for _, c := range chosen.objects {
			switch {
			case c.audit && c.problem == nil:
				m.audited = append(m.audited, c)
			case !isSkipped(skipped, c):
				candidates = append(candidates, c)
			}
		}
	}
	m.applied, m.invalid = usable(p, candidates)
	if p.bounds.applied = len(m.applied); m.exceedsItself() {
		return m
	}
	m.declare()
	m.addAllContainers()
	for i, c := range m.applied {
		if m.index = i; m.stops() {
			return m
		}
		m.apply(c)
		m.exceeded(c, func() string { return "the pod" })
	}
	if m.stops() {
		return m
	}
	if len(m.entries) > 0 {
		m.annotationSize()
	}
	result := finished{pod: m.pod, applied: m.applied, fresh: m.fresh, refuse: m.impossible}
	if result.check(); m.dropped == nil {
		m.warnOfAll()
	}
	return m
}

// declare records the names of containers that objects bring, or would bring.
func (m *merge) declare() {
	for _, s := range m.skipped { // the pod will carry marks only of these
		m.leaveOut(s.object)
	}
	for _, c := range m.invalid {
		if c.policy == kubeflowv1alpha1.ConflictSkip { // and would be skipped if it were valid
			m.leaveOut(c)
		}
	}
	for _, c := range m.applied {
		for _, list := range [][]item{c.containers, c.initContainers} {
			for _, added := range list {
				m.injected.add(added.key)
			}
		}
	}
	m.readMesh()
}

// addAllContainers adds labels and containers, because an object may select a container that
// a later one brings.
func (m *merge) addAllContainers() {
	p := m.pod
	for i, c := range m.applied {
		if m.index = i; m.stops() {
			return
		}
		if c.template != nil {
			if c = m.fill(c); c == nil {
				continue
			}
			m.applied[i] = c
		}
		for _, l := range c.labels {
			m.setLabel(l, c)
		}
		if len(c.initContainers)+len(c.containers) == 0 {
			continue
		}
		m.addContainers(&p.initContainers, &p.containers, c.initContainers, initContainersList)
		m.addContainers(&p.containers, &p.initContainers, c.containers, containersList)
		if len(p.containers.added)+len(p.initContainers.added)+len(p.app)+len(p.init) > maxContainers {
			p.bounds.exceed(fmt.Sprintf("with it the pod would have more than %d", maxContainers))
		}
		m.exceeded(c, func() string { return "container" })
	}
}

// stops reports whether the rest need not be tried: an object is dropped, or a limit exceeded.
func (m *merge) stops() bool { return m.dropped != nil || m.pod.bounds.spent() }

// warnOfAll warns of what is not a conflict.
func (m *merge) warnOfAll() {
	for _, c := range m.applied {
		m.warnOfSeveral(c)
	}
	m.passOver()
	for _, c := range m.invalid {
		reason := "a volume that it mounts exists neither there nor in the pod"
		if c.problem != nil {
			reason = strings.ReplaceAll(c.problem.Error(), "\n", "; ")
		}
		m.warn("%s was not applied: %s", c, reason)
	}
	for _, s := range m.skipped {
		m.warn("%s was skipped: %s", s.object, s.reason)
	}
}

// leaveOut records the containers of an object that is not applied.
func (m *merge) leaveOut(c *Compiled) {
	for _, list := range [][]item{c.containers, c.initContainers} {
		for _, left := range list {
			m.leftOut.add(left.key)
		}
	}
}

func (m *merge) apply(c *Compiled) {
	p := m.pod
	if isIn(m.unfilled, c) {
		return
	}
	for _, a := range c.annotations {
		m.setAnnotation(a, c)
	}
	m.add(&p.volumes, c.volumes, volumeList, nil)
	for _, wanted := range c.tolerations {
		if m.addToleration(wanted); m.exceeded(c, func() string { return placeIn(tolerationKind, wanted.key, nil) }) {
			return
		}
	}
	m.add(&p.pullSecrets, c.pullSecrets, pullSecretList, nil)
	for i := range c.podLists {
		f := &c.podLists[i]
		m.add(p.spec.list(f), f.items, f.id, nil)
	}
	m.setValues(&p.spec, nil, c, c.podValues)
	m.narrow(c)
	m.pickedFrom(c, func(t *container) { m.applyTo(t, c) })
}

// applyTo merges additions to containers.
func (m *merge) applyTo(t *container, c *Compiled) {
	if m.picks(c, t, m.mesh) {
		m.add(&t.env, c.env, envList, t)
		m.add(&t.envFrom, c.envFrom, envFromList, t)
		for i, mount := range c.volumeMounts {
			m.warnOfSlash(t, mount, c.twins[i])
		}
		m.add(&t.volumeMounts, c.volumeMounts, mountList, t)
		for i := range c.containerLists {
			f := &c.containerLists[i]
			m.addField(t, f)
		}
		m.addResources(t, c)
	}
	m.setValues(&t.holder, t, c, c.containerValues)
}

// addField merges a list of a container, except capabilities that the other list
// withdraws.
func (m *merge) addField(t *container, f *fieldList) {
	l := t.list(f)
	for i, w := range f.items {
		if other := m.withdraws(t, f, w); other != nil {
			m.stuck(w.origin, other.origin, f.kind.name+" "+w.key+" of container "+t.name,
				m.holder(other, "the pod")+opposes(f), nil)
			continue
		}
		m.add(l, f.items[i:i+1], f.id, t)
	}
}

// add merges elements into the list with this id, see [Compiled.eachList].
func (m *merge) add(l *list, wanted []item, id string, t *container) {
	for i, w := range wanted {
		if i > 0 && m.pod.bounds.spent() {
			break
		}
		if other, differences := l.add(w); other != nil {
			m.disagree(l, w, other, differences, t, id)
		}
	}
	if len(wanted) > 0 {
		m.exceeded(wanted[0].origin, func() string { return placeOf(l.kind.name, t) })
	}
}

// addContainers merges init containers or sidecars. Names are unique across both lists
// of a pod.
func (m *merge) addContainers(to, beside *list, wanted []item, id string) {
	for i, w := range wanted {
		if other, _ := beside.find(w.key); other != nil {
			m.stuck(w.origin, other.origin, "container "+w.key, "it has the name of "+
				m.holder(other, "one in "+strings.ReplaceAll(beside.path()[1:], "/", "."))+"; choose another name", nil)
			continue
		}
		m.add(to, wanted[i:i+1], id, nil)
		if now, _ := to.find(w.key); now != nil && now.origin == w.origin {
			m.brought(to, w)
		}
	}
}

// brought creates the container of w, to which others may add.
func (m *merge) brought(to *list, w item) {
	t := &container{origin: w.origin, init: to.field == "initContainers"}
	r := rawjson.NewReader(w.value)
	t.read(&r, "", wantedLists{}, &m.pod.bounds)
	m.pod.bounds.did(len(m.pod.app) + len(m.pod.init))
	for _, containers := range [][]container{m.pod.app, m.pod.init} {
		for i := range containers {
			if containers[i].name == w.key { // it replaces this one
				containers[i] = container{name: w.key, init: t.init, origin: w.origin}
			}
		}
	}
	for i := range m.fresh {
		if m.fresh[i].name == w.key { // or an earlier object's
			m.fresh[i] = t
			return
		}
	}
	m.fresh = append(m.fresh, t)
}

// addToleration merges a toleration. Its tolerationSeconds are not part of its
// identity: the PodDefault's replace the pod's. This allows tuning the two tolerations
// that the DefaultTolerationSeconds plugin has already added to every pod, 300 seconds
// each.
func (m *merge) addToleration(w item) {
	l, c := &m.pod.tolerations, w.origin
	present, index := l.find(w.key)
	if present == nil || present.origin != nil {
		if other, differences := l.add(w); other != nil {
			m.disagree(l, w, other, differences, nil, tolerationList)
		}
		return
	}
	seconds, have := member(w.value, "tolerationSeconds"), member(present.value, "tolerationSeconds")
	since := func() bool {
		return m.replacedSince(c, place{tolerationList, w.key}, nil, nil, func(later jsontext.Value) bool {
			return string(member(later, "tolerationSeconds")) == string(have)
		})
	}
	if i, ok := m.setByNow[index]; ok {
		earlier := m.seconds[i]
		at := placeIn(l.kind, w.key, nil)
		if string(earlier.value) == string(seconds) || earlier.there && m.excused(c, c.policy, at) {
			return
		}
		if m.settle(c, earlier.origin, c.policy, at, "they differ in tolerationSeconds", since) {
			m.seconds[i] = setSeconds{index, seconds, string(have) == string(seconds), c}
		}
		return
	}
	there := string(have) == string(seconds)
	if !there && string(have) != "300" {
		if c.policy != "" && !m.settle(c, nil, c.policy, placeIn(l.kind, w.key, nil), "the pod has other tolerationSeconds", since) {
			return
		}
		if c.policy == "" {
			m.warn("%s set the tolerationSeconds of the pod's toleration %s", c, w.key)
		}
	}
	if m.setByNow == nil {
		m.setByNow = map[int]int{}
	}
	m.setByNow[index] = len(m.seconds)
	m.pod.bounds.grow(len(seconds))
	m.seconds = append(m.seconds, setSeconds{index, seconds, there, c})
}

// twinOf returns the mount path that differs only by a trailing slash.
func twinOf(path string) string {
	if twin, cut := strings.CutSuffix(path, "/"); cut {
		return twin
	}
	return path + "/"
}

// warnOfSlash warns of mount paths that Kubernetes treats as different but a container
// as the same.
func (m *merge) warnOfSlash(target *container, mount item, twin string) {
	if other, _ := target.volumeMounts.find(twin); other != nil {
		m.warn("%s: mountPath %s of container %s differs only by a slash from that of %s",
			mount.origin, mount.key, target.name, m.holder(other, "the pod"))
	}
}

// maxWarning limits the runes of a warning. The API server shows 4096 for all of them
// together.
const maxWarning = 256

func (m *merge) warn(format string, args ...any) {
	if len(m.warnings) == maxTold {
		m.untold++
		return
	}
	text := fmt.Sprintf(format, args...)
	if runes := []rune(text); len(runes) > maxWarning {
		text = string(runes[:maxWarning-3]) + "..."
	}
	m.warnings = append(m.warnings, text)
}

// holder names the PodDefault that added an element, or else pod.
func (m *merge) holder(other *item, pod string) string {
	if other.origin != nil {
		return other.origin.String()
	}
	return pod
}

func holderName(c *Compiled) string {
	if c != nil {
		return c.String()
	}
	return "the pod"
}

// of returns another object's elements for the same list.
func (f *fieldList) of(c *Compiled) []item {
	for _, lists := range [][]fieldList{c.podLists, c.containerLists} {
		for i := range lists {
			if lists[i].kind == f.kind && slices.Equal(lists[i].tokens, f.tokens) {
				return lists[i].items
			}
		}
	}
	return nil
}
