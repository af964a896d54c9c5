// SPDX-License-Identifier: Apache-2.0

// Package merge folds plans into a pod: it declares what they bring, tries one after the other,
// finishes what does not depend on their order, and checks the result.
//
// In go a pod and a match; out comes a patch with the origin of each change, or a denial with all
// conflicts. A conflict is decided in the turn of its plan. The only steps that look ahead are those
// that declare names, and a fold that starts anew without a plan that was dropped, at most once for
// each.
package merge

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/check"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podstate"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// A Merge applies PodDefaults to one pod. It changes nothing until all of them are
// merged. If there is no conflict it emits everything, otherwise the whole pod is
// denied.
type Merge struct {
	Pod       *podstate.Pod
	leftAlone *LeftAlone

	Applied  []*plan.Plan // in the order of application
	index    int          // of the current object
	dropped  *conflict    // the first conflict because of which an object is to be skipped
	unfilled []*plan.Plan // with placeholders for which there is no value
	invalid  []*plan.Plan // chosen, but cannot work in this pod
	passed   []*plan.Plan // applied to nothing, because of a mesh
	skipped  []skip
	Audited  []*plan.Plan
	Outside  []*plan.Plan // see [match.Match]

	namespace           string
	labels, annotations map[string]int // positions in entries by key
	entries             []setEntry     // added labels and annotations, in order

	seconds     []setSeconds
	setByNow    map[int]int          // positions in seconds by toleration index
	overriders  map[place][]override // built on demand, see [merge.replacedSince]
	limitRanges map[string]bool      // see [merge.limitRanged]

	mesh          []string              // containers left alone because they are a mesh's
	injected      meta.NameSet          // names of containers added by PodDefaults
	fresh         []*podstate.Container // added containers that the pod does not have
	leftOut       meta.NameSet          // names of containers of skipped objects
	firsts        map[*plan.Plan]*podstate.Container
	Conflicts     []conflict
	atOdds        map[[2]*plan.Plan]bool // pairs with a conflict, once there are many
	moreConflicts int
	warnings      []string
	untold        int // number of warnings beyond the limit
	excess        *match.Excess
}

// setSeconds is a toleration of the pod whose tolerationSeconds a PodDefault sets.
type setSeconds struct {
	index  int
	value  jsontext.Value // nil: tolerate forever
	there  bool           // unchanged
	origin *plan.Plan
}

// All tries the matched objects, except skipped ones, one after the other. It stops at
// the first that is to be dropped: see [merge.dropped].
func All(p *podstate.Pod, chosen match.Match, skipped []skip, leftAlone *LeftAlone) *Merge {
	m := &Merge{Pod: p, leftAlone: leftAlone, Outside: chosen.Outside, skipped: skipped, namespace: chosen.Namespace}
	candidates := chosen.Objects
	if chosen.Audits || len(skipped) > 0 {
		candidates = make([]*plan.Plan, 0, len(chosen.Objects))
		for _, c := range chosen.Objects {
			switch {
			case c.Audit && c.Problem() == nil:
				m.Audited = append(m.Audited, c)
			case !isSkipped(skipped, c):
				candidates = append(candidates, c)
			}
		}
	}
	m.Applied, m.invalid = usable(p, candidates)
	if p.Bounds.Applied = len(m.Applied); m.exceedsItself() {
		return m
	}
	m.declare()
	m.addAllContainers()
	for i, c := range m.Applied {
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
	result := check.Finished{Pod: m.Pod, Applied: m.Applied, Fresh: m.fresh, Refuse: m.impossible}
	if result.Check(); m.dropped == nil {
		m.warnOfAll()
	}
	return m
}

// declare records the names of containers that objects bring, or would bring.
func (m *Merge) declare() {
	for _, s := range m.skipped { // the pod will carry marks only of these
		m.leaveOut(s.object)
	}
	for _, c := range m.invalid {
		if c.Policy == kubeflowv1alpha1.ConflictSkip { // and would be skipped if it were valid
			m.leaveOut(c)
		}
	}
	for _, c := range m.Applied {
		for _, list := range [][]plan.Item{c.Containers, c.InitContainers} {
			for _, added := range list {
				m.injected.Add(added.Key)
			}
		}
	}
	m.readMesh()
}

// addAllContainers adds labels and containers, because an object may select a container that
// a later one brings.
func (m *Merge) addAllContainers() {
	p := m.Pod
	for i, c := range m.Applied {
		if m.index = i; m.stops() {
			return
		}
		if c.Template != nil {
			if c = m.fill(c); c == nil {
				continue
			}
			m.Applied[i] = c
		}
		for _, l := range c.Labels {
			m.setLabel(l, c)
		}
		if len(c.InitContainers)+len(c.Containers) == 0 {
			continue
		}
		m.addContainers(&p.InitContainers, &p.Containers, c.InitContainers, plan.InitContainersList)
		m.addContainers(&p.Containers, &p.InitContainers, c.Containers, plan.ContainersList)
		if len(p.Containers.Added)+len(p.InitContainers.Added)+len(p.App)+len(p.Init) > meta.MaxContainers {
			p.Bounds.Exceed(fmt.Sprintf("with it the pod would have more than %d", meta.MaxContainers))
		}
		m.exceeded(c, func() string { return "container" })
	}
}

// stops reports whether the rest need not be tried: an object is dropped, or a limit exceeded.
func (m *Merge) stops() bool { return m.dropped != nil || m.Pod.Bounds.Spent() }

// warnOfAll warns of what is not a conflict.
func (m *Merge) warnOfAll() {
	for _, c := range m.Applied {
		m.warnOfSeveral(c)
	}
	m.passOver()
	for _, c := range m.invalid {
		reason := "a volume that it mounts exists neither there nor in the pod"
		if c.Problem() != nil {
			reason = strings.ReplaceAll(c.Problem().Error(), "\n", "; ")
		}
		m.warn("%s was not applied: %s", c, reason)
	}
	for _, s := range m.skipped {
		m.warn("%s was skipped: %s", s.object, s.reason)
	}
}

// leaveOut records the containers of an object that is not applied.
func (m *Merge) leaveOut(c *plan.Plan) {
	for _, list := range [][]plan.Item{c.Containers, c.InitContainers} {
		for _, left := range list {
			m.leftOut.Add(left.Key)
		}
	}
}

func (m *Merge) apply(c *plan.Plan) {
	p := m.Pod
	if plan.IsIn(m.unfilled, c) {
		return
	}
	for _, a := range c.Annotations {
		m.setAnnotation(a, c)
	}
	m.add(&p.Volumes, c.Volumes, plan.VolumeList, nil)
	for _, wanted := range c.Tolerations {
		if m.addToleration(wanted); m.exceeded(c, func() string { return placeIn(plan.TolerationKind, wanted.Key, nil) }) {
			return
		}
	}
	m.add(&p.PullSecrets, c.PullSecrets, plan.PullSecretList, nil)
	for i := range c.PodLists {
		f := &c.PodLists[i]
		m.add(p.Spec.List(f), f.Items, f.ID, nil)
	}
	m.setValues(&p.Spec, nil, c, c.PodValues)
	m.narrow(c)
	m.pickedFrom(c, func(t *podstate.Container) { m.applyTo(t, c) })
}

// applyTo merges additions to containers.
func (m *Merge) applyTo(t *podstate.Container, c *plan.Plan) {
	if m.picks(c, t, m.mesh) {
		m.add(&t.Env, c.Env, plan.EnvList, t)
		m.add(&t.EnvFrom, c.EnvFrom, plan.EnvFromList, t)
		for i, mount := range c.VolumeMounts {
			m.warnOfSlash(t, mount, c.Twins[i])
		}
		m.add(&t.VolumeMounts, c.VolumeMounts, plan.MountList, t)
		for i := range c.ContainerLists {
			f := &c.ContainerLists[i]
			m.addField(t, f)
		}
		m.addResources(t, c)
	}
	m.setValues(&t.Holder, t, c, c.ContainerValues)
}

// addField merges a list of a container, except capabilities that the other list
// withdraws.
func (m *Merge) addField(t *podstate.Container, f *plan.FieldList) {
	l := t.List(f)
	for i, w := range f.Items {
		if other := m.withdraws(t, f, w); other != nil {
			m.stuck(w.Origin, other.Origin, f.Kind.Name+" "+w.Key+" of container "+t.Name,
				m.holder(other, "the pod")+opposes(f), nil)
			continue
		}
		m.add(l, f.Items[i:i+1], f.ID, t)
	}
}

// add merges elements into the list with this id, see [plan.Plan.EachList].
func (m *Merge) add(l *podstate.List, wanted []plan.Item, id string, t *podstate.Container) {
	for i, w := range wanted {
		if i > 0 && m.Pod.Bounds.Spent() {
			break
		}
		if other, differences := l.Add(w); other != nil {
			m.disagree(l, w, other, differences, t, id)
		}
	}
	if len(wanted) > 0 {
		m.exceeded(wanted[0].Origin, func() string { return placeOf(l.Kind.Name, t) })
	}
}

// addContainers merges init containers or sidecars. Names are unique across both lists
// of a pod.
func (m *Merge) addContainers(to, beside *podstate.List, wanted []plan.Item, id string) {
	for i, w := range wanted {
		if other, _ := beside.Find(w.Key); other != nil {
			m.stuck(w.Origin, other.Origin, "container "+w.Key, "it has the name of "+
				m.holder(other, "one in "+strings.ReplaceAll(beside.Path()[1:], "/", "."))+"; choose another name", nil)
			continue
		}
		m.add(to, wanted[i:i+1], id, nil)
		if now, _ := to.Find(w.Key); now != nil && now.Origin == w.Origin {
			m.brought(to, w)
		}
	}
}

// brought creates the container of w, to which others may add.
func (m *Merge) brought(to *podstate.List, w plan.Item) {
	t := &podstate.Container{Origin: w.Origin, Init: to.Field == "initContainers"}
	r := rawjson.NewReader(w.Value)
	t.Read(&r, "", podstate.WantedLists{}, &m.Pod.Bounds)
	m.Pod.Bounds.Did(len(m.Pod.App) + len(m.Pod.Init))
	for _, containers := range [][]podstate.Container{m.Pod.App, m.Pod.Init} {
		for i := range containers {
			if containers[i].Name == w.Key { // it replaces this one
				containers[i] = podstate.Container{Name: w.Key, Init: t.Init, Origin: w.Origin}
			}
		}
	}
	for i := range m.fresh {
		if m.fresh[i].Name == w.Key { // or an earlier object's
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
func (m *Merge) addToleration(w plan.Item) {
	l, c := &m.Pod.Tolerations, w.Origin
	present, index := l.Find(w.Key)
	if present == nil || present.Origin != nil {
		if other, differences := l.Add(w); other != nil {
			m.disagree(l, w, other, differences, nil, plan.TolerationList)
		}
		return
	}
	seconds, have := plan.Member(w.Value, "tolerationSeconds"), plan.Member(present.Value, "tolerationSeconds")
	since := func() bool {
		return m.replacedSince(c, place{plan.TolerationList, w.Key}, nil, nil, func(later jsontext.Value) bool {
			return string(plan.Member(later, "tolerationSeconds")) == string(have)
		})
	}
	if i, ok := m.setByNow[index]; ok {
		earlier := m.seconds[i]
		at := placeIn(l.Kind, w.Key, nil)
		if string(earlier.value) == string(seconds) || earlier.there && m.excused(c, c.Policy, at) {
			return
		}
		if m.settle(c, earlier.origin, c.Policy, at, "they differ in tolerationSeconds", since) {
			m.seconds[i] = setSeconds{index, seconds, string(have) == string(seconds), c}
		}
		return
	}
	there := string(have) == string(seconds)
	if !there && string(have) != "300" {
		if c.Policy != "" && !m.settle(c, nil, c.Policy, placeIn(l.Kind, w.Key, nil), "the pod has other tolerationSeconds", since) {
			return
		}
		if c.Policy == "" {
			m.warn("%s set the tolerationSeconds of the pod's toleration %s", c, w.Key)
		}
	}
	if m.setByNow == nil {
		m.setByNow = map[int]int{}
	}
	m.setByNow[index] = len(m.seconds)
	m.Pod.Bounds.Grow(len(seconds))
	m.seconds = append(m.seconds, setSeconds{index, seconds, there, c})
}

// warnOfSlash warns of mount paths that Kubernetes treats as different but a container
// as the same.
func (m *Merge) warnOfSlash(target *podstate.Container, mount plan.Item, twin string) {
	if other, _ := target.VolumeMounts.Find(twin); other != nil {
		m.warn("%s: mountPath %s of container %s differs only by a slash from that of %s",
			mount.Origin, mount.Key, target.Name, m.holder(other, "the pod"))
	}
}

// maxWarning limits the runes of a warning. The API server shows 4096 for all of them
// together.
const maxWarning = 256

func (m *Merge) warn(format string, args ...any) {
	if len(m.warnings) == meta.MaxTold {
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
func (m *Merge) holder(other *plan.Item, pod string) string {
	if other.Origin != nil {
		return other.Origin.String()
	}
	return pod
}

func holderName(c *plan.Plan) string {
	if c != nil {
		return c.String()
	}
	return "the pod"
}
