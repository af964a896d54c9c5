// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podstate"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/validate"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// An adder tries what one object after the other wants.
type adder struct {
	arbiter
	unfilled []*plan.Plan // with placeholders for which there is no value
	seconds  []setSeconds
	setByNow map[int]int // positions in seconds by toleration index
}

// setSeconds is a toleration of the pod whose tolerationSeconds a PodDefault sets.
type setSeconds struct {
	index  int
	value  jsontext.Value // nil: tolerate forever
	there  bool           // unchanged
	origin *plan.Plan
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
	if !p.Spec.Narrow(c) {
		ad.conflict(conflict{object: c, alone: true}, "%s: required node affinity would have more than %d terms", c, validate.MaxNodeTerms)
	}
	ad.pickedFrom(c, func(t *podstate.Container) { ad.applyTo(t, c) })
}

// applyTo merges additions to containers.
func (ad *adder) applyTo(t *podstate.Container, c *plan.Plan) {
	if ad.picks(c, t, ad.mesh) {
		ad.add(&t.Env, c.Env, plan.EnvList, t)
		ad.add(&t.EnvFrom, c.EnvFrom, plan.EnvFromList, t)
		for i, mount := range c.VolumeMounts {
			ad.warnOfSlash(t, mount, c.TrailingSlash[i])
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
			ad.resolveFixed(w.Origin, other.Origin, f.Kind.Name+" "+w.Key+" of container "+t.Name,
				holder(other.Origin, "the pod")+opposes(f), nil)
			continue
		}
		ad.add(l, f.Items[i:i+1], f.ID, t)
	}
}

// withdraws reports whether the element is a capability that the container's other list
// contains: one adds what the other drops. Policies can only resolve that conflict by
// keeping the existing element.
func withdraws(t *podstate.Container, f *plan.FieldList, wanted plan.Item) (other *plan.Item) {
	opposite := plan.FieldList{Tokens: slices.Clone(f.Tokens)}
	switch f.Kind {
	case plan.CapabilityAddKind:
		opposite.Kind, opposite.Tokens[2] = plan.CapabilityDropKind, "drop"
	case plan.CapabilityDropKind:
		opposite.Kind, opposite.Tokens[2] = plan.CapabilityAddKind, "add"
	default:
		return nil
	}
	other, _ = t.List(&opposite).Find(wanted.Key)
	return other
}

// opposes returns what the element that [withdraws] found does, for messages.
func opposes(f *plan.FieldList) string {
	if f.Kind == plan.CapabilityAddKind {
		return " drops it"
	}
	return " adds it"
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
			ad.resolveFixed(w.Origin, other.Origin, "container "+w.Key, "it has the name of "+
				holder(other.Origin, "one in "+strings.ReplaceAll(beside.Path()[1:], "/", "."))+"; choose another name", nil)
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
	t.Read(&r, "", &podstate.WantedLists{}, &ad.Pod.Bounds)
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
		if string(earlier.value) == string(seconds) || earlier.there && ad.tolerates(c, c.Policy, at) {
			return
		}
		if ad.resolve(c, earlier.origin, c.Policy, at, "they differ in tolerationSeconds", since) {
			ad.seconds[i] = setSeconds{index, seconds, string(have) == string(seconds), c}
		}
		return
	}
	there := string(have) == string(seconds)
	if !there && string(have) != "300" {
		if c.Policy != "" && !ad.resolve(c, nil, c.Policy, placeIn(l.Kind, w.Key, nil), "the pod has other tolerationSeconds", since) {
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
		ad.warn("%s: mountPath %s of container %s differs only by a slash from that of %s: to the container both are one path, where one mount hides the other; write them alike",
			mount.Origin, mount.Key, target.Name, holder(other.Origin, "the pod"))
	}
}
