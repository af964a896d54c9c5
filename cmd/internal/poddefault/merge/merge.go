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
//
// Each part knows only those below it: an adder tries what one object wants, an arbiter settles
// what it finds in the way, and what they share is the trial, the containers in reach, the metadata
// so far, the conflicts and the warnings.
type Merge struct {
	adder

	invalid []*plan.Plan // chosen, but cannot work in this pod
	passed  []*plan.Plan // applied to nothing, because of a mesh
	skipped []skip
	Audited []*plan.Plan
	Outside []*plan.Plan // see [match.Match]
}

// An adder tries what one object after the other wants.
type adder struct {
	arbiter
	unfilled    []*plan.Plan // with placeholders for which there is no value
	seconds     []setSeconds
	setByNow    map[int]int     // positions in seconds by toleration index
	limitRanges map[string]bool // see [adder.limitRanged]
}

// setSeconds is a toleration of the pod whose tolerationSeconds a PodDefault sets.
type setSeconds struct {
	index  int
	value  jsontext.Value // nil: tolerate forever
	there  bool           // unchanged
	origin *plan.Plan
}

// All tries the matched objects, except skipped ones, one after the other. It stops at
// the first that is to be dropped: see [conflicts.dropped].
func All(p *podstate.Pod, chosen match.Match, skipped []skip, leftAlone *LeftAlone) *Merge {
	m := &Merge{Outside: chosen.Outside, skipped: skipped}
	m.Pod, m.conflicts.pod = p, p
	m.reach.pod, m.leftAlone = p, leftAlone
	m.metadata.pod, m.namespace = p, chosen.Namespace
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
func (r *reach) leaveOut(c *plan.Plan) {
	for _, list := range [][]plan.Item{c.Containers, c.InitContainers} {
		for _, left := range list {
			r.leftOut.Add(left.Key)
		}
	}
}

func (ad *adder) apply(c *plan.Plan) {
	p := ad.Pod
	if plan.IsIn(ad.unfilled, c) {
		return
	}
	for _, a := range c.Annotations {
		ad.setAnnotation(a, c)
	}
	ad.add(&p.Volumes, c.Volumes, plan.VolumeList, nil)
	for _, wanted := range c.Tolerations {
		if ad.addToleration(wanted); ad.exceeded(c, func() string { return placeIn(plan.TolerationKind, wanted.Key, nil) }) {
			return
		}
	}
	ad.add(&p.PullSecrets, c.PullSecrets, plan.PullSecretList, nil)
	for i := range c.PodLists {
		f := &c.PodLists[i]
		ad.add(p.Spec.List(f), f.Items, f.ID, nil)
	}
	ad.setValues(&p.Spec, nil, c, c.PodValues)
	ad.narrow(c)
	ad.pickedFrom(c, func(t *podstate.Container) { ad.applyTo(t, c) })
}

// applyTo merges additions to containers.
func (ad *adder) applyTo(t *podstate.Container, c *plan.Plan) {
	if ad.picks(c, t, ad.mesh) {
		ad.add(&t.Env, c.Env, plan.EnvList, t)
		ad.add(&t.EnvFrom, c.EnvFrom, plan.EnvFromList, t)
		for i, mount := range c.VolumeMounts {
			ad.warnOfSlash(t, mount, c.Twins[i])
		}
		ad.add(&t.VolumeMounts, c.VolumeMounts, plan.MountList, t)
		for i := range c.ContainerLists {
			f := &c.ContainerLists[i]
			ad.addField(t, f)
		}
		ad.addResources(t, c)
	}
	ad.setValues(&t.Holder, t, c, c.ContainerValues)
}

// addField merges a list of a container, except capabilities that the other list
// withdraws.
func (ad *adder) addField(t *podstate.Container, f *plan.FieldList) {
	l := t.List(f)
	for i, w := range f.Items {
		if other := withdraws(t, f, w); other != nil {
			ad.stuck(w.Origin, other.Origin, f.Kind.Name+" "+w.Key+" of container "+t.Name,
				holder(other, "the pod")+opposes(f), nil)
			continue
		}
		ad.add(l, f.Items[i:i+1], f.ID, t)
	}
}

// add merges elements into the list with this id, see [plan.Plan.EachList].
func (ad *adder) add(l *podstate.List, wanted []plan.Item, id string, t *podstate.Container) {
	for i, w := range wanted {
		if i > 0 && ad.Pod.Bounds.Spent() {
			break
		}
		if other, differences := l.Add(w); other != nil {
			ad.disagree(l, w, other, differences, t, id)
		}
	}
	if len(wanted) > 0 {
		ad.exceeded(wanted[0].Origin, func() string { return placeOf(l.Kind.Name, t) })
	}
}

// addContainers merges init containers or sidecars. Names are unique across both lists
// of a pod.
func (ad *adder) addContainers(to, beside *podstate.List, wanted []plan.Item, id string) {
	for i, w := range wanted {
		if other, _ := beside.Find(w.Key); other != nil {
			ad.stuck(w.Origin, other.Origin, "container "+w.Key, "it has the name of "+
				holder(other, "one in "+strings.ReplaceAll(beside.Path()[1:], "/", "."))+"; choose another name", nil)
			continue
		}
		ad.add(to, wanted[i:i+1], id, nil)
		if now, _ := to.Find(w.Key); now != nil && now.Origin == w.Origin {
			ad.brought(to, w)
		}
	}
}

// brought creates the container of w, to which others may add.
func (ad *adder) brought(to *podstate.List, w plan.Item) {
	t := &podstate.Container{Origin: w.Origin, Init: to.Field == "initContainers"}
	r := rawjson.NewReader(w.Value)
	t.Read(&r, "", podstate.WantedLists{}, &ad.Pod.Bounds)
	ad.Pod.Bounds.Did(len(ad.Pod.App) + len(ad.Pod.Init))
	for _, containers := range [][]podstate.Container{ad.Pod.App, ad.Pod.Init} {
		for i := range containers {
			if containers[i].Name == w.Key { // it replaces this one
				containers[i] = podstate.Container{Name: w.Key, Init: t.Init, Origin: w.Origin}
			}
		}
	}
	for i := range ad.fresh {
		if ad.fresh[i].Name == w.Key { // or an earlier object's
			ad.fresh[i] = t
			return
		}
	}
	ad.fresh = append(ad.fresh, t)
}

// addToleration merges a toleration. Its tolerationSeconds are not part of its
// identity: the PodDefault's replace the pod's. This allows tuning the two tolerations
// that the DefaultTolerationSeconds plugin has already added to every pod, 300 seconds
// each.
func (ad *adder) addToleration(w plan.Item) {
	l, c := &ad.Pod.Tolerations, w.Origin
	present, index := l.Find(w.Key)
	if present == nil || present.Origin != nil {
		if other, differences := l.Add(w); other != nil {
			ad.disagree(l, w, other, differences, nil, plan.TolerationList)
		}
		return
	}
	seconds, have := plan.Member(w.Value, "tolerationSeconds"), plan.Member(present.Value, "tolerationSeconds")
	since := func() bool {
		return ad.replacedSince(c, place{plan.TolerationList, w.Key}, nil, nil, func(later jsontext.Value) bool {
			return string(plan.Member(later, "tolerationSeconds")) == string(have)
		})
	}
	if i, ok := ad.setByNow[index]; ok {
		earlier := ad.seconds[i]
		at := placeIn(l.Kind, w.Key, nil)
		if string(earlier.value) == string(seconds) || earlier.there && ad.excused(c, c.Policy, at) {
			return
		}
		if ad.settle(c, earlier.origin, c.Policy, at, "they differ in tolerationSeconds", since) {
			ad.seconds[i] = setSeconds{index, seconds, string(have) == string(seconds), c}
		}
		return
	}
	there := string(have) == string(seconds)
	if !there && string(have) != "300" {
		if c.Policy != "" && !ad.settle(c, nil, c.Policy, placeIn(l.Kind, w.Key, nil), "the pod has other tolerationSeconds", since) {
			return
		}
		if c.Policy == "" {
			ad.warn("%s set the tolerationSeconds of the pod's toleration %s", c, w.Key)
		}
	}
	if ad.setByNow == nil {
		ad.setByNow = map[int]int{}
	}
	ad.setByNow[index] = len(ad.seconds)
	ad.Pod.Bounds.Grow(len(seconds))
	ad.seconds = append(ad.seconds, setSeconds{index, seconds, there, c})
}

// warnOfSlash warns of mount paths that Kubernetes treats as different but a container
// as the same.
func (ad *adder) warnOfSlash(target *podstate.Container, mount plan.Item, twin string) {
	if other, _ := target.VolumeMounts.Find(twin); other != nil {
		ad.warn("%s: mountPath %s of container %s differs only by a slash from that of %s",
			mount.Origin, mount.Key, target.Name, holder(other, "the pod"))
	}
}

// maxWarning limits the runes of a warning. The API server shows 4096 for all of them
// together.
const maxWarning = 256

func (w *warnings) warn(format string, args ...any) {
	if len(w.texts) == meta.MaxTold {
		w.untold++
		return
	}
	text := fmt.Sprintf(format, args...)
	if runes := []rune(text); len(runes) > maxWarning {
		text = string(runes[:maxWarning-3]) + "..."
	}
	w.texts = append(w.texts, text)
}

// holder names the PodDefault that added an element, or else pod.
func holder(other *plan.Item, pod string) string {
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
