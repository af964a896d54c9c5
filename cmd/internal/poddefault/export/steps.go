// SPDX-License-Identifier: Apache-2.0

package export

import (
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// maxInStep is how many objects one mutation injects at most. The API server limits the cost of
// each expression (celconfig.PerCallLimit), and each object looks through the lists of every
// container.
const maxInStep = 16

// steps divides the objects, in order, among mutations. The API server encodes, patches and
// decodes the pod once for each mutation, which takes far longer than its expression. A mutation
// does not see what it changes itself, so objects that bring the same element are in different
// ones.
func (n *namespace) steps() [][]*object {
	var steps [][]*object
	taken, size := map[string]bool{}, 0
	for _, o := range n.objects {
		places := o.places()
		length := utf8.RuneCountInString(n.injection([]*object{o}))
		if len(steps) == 0 || len(steps[len(steps)-1]) == maxInStep || size+length > maxExpression ||
			slices.ContainsFunc(places, func(place string) bool { return taken[place] }) {
			steps = append(steps, nil)
			clear(taken)
			size = 0
		}
		steps[len(steps)-1] = append(steps[len(steps)-1], o)
		size += length
		for _, place := range places {
			taken[place] = true
		}
	}
	return steps
}

// mutations returns the expressions of the mutations.
func (n *namespace) mutations() []string {
	var out []string
	for _, step := range n.steps() {
		out = append(out, n.injection(step))
	}
	last := len(out) - 1
	// Without tokens, the closing looks at nothing that an injection changes.
	if both := flatten([]string{out[last], n.closing()}); len(n.tokens()) == 0 && utf8.RuneCountInString(both) <= maxExpression {
		out[last] = both
		return out
	}
	return append(out, n.closing())
}

// places returns everything that an object sets in a pod: elements by their keys, and fields.
func (o *object) places() []string {
	var places []string
	for _, m := range o.maps() {
		for key := range m.wanted {
			places = append(places, m.path+"/"+key)
		}
	}
	add := func(field string, l list) {
		for _, e := range l.elements {
			places = append(places, field+" "+e.same)
		}
	}
	for _, l := range slices.Concat(podLists(&o.Spec), ownLists(&o.Spec), []list{tolerationsOf(&o.Spec)}) {
		add(l.field, l)
	}
	for _, l := range containerLists(&o.Spec) {
		add("containers", l) // and init containers share their names
	}
	for _, c := range commandsOf(&o.Spec) {
		places = append(places, c.field)
	}
	if o.Spec.ServiceAccountName != "" {
		places = append(places, "serviceAccountName")
	}
	if o.Spec.AutomountServiceAccountToken != nil {
		places = append(places, "automountServiceAccountToken")
	}
	return places
}

// stringMap is what an object adds to a map of the pod.
type stringMap struct {
	path, parent, field string
	wanted              map[string]string
}

// of returns an expression for the pod's map.
func (m stringMap) of() string { return m.parent + ".?" + m.field + ".orValue({})" }

func (o *object) maps() []stringMap {
	annotations := maps.Clone(o.Spec.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[meta.Mark(o.Name)] = o.ResourceVersion
	return []stringMap{
		{"/metadata/labels", "object.metadata", "labels", o.Spec.Labels},
		{"/metadata/annotations", "object.metadata", "annotations", annotations},
		{"/spec/nodeSelector", "object.spec", "nodeSelector", o.Spec.NodeSelector},
	}
}

// A holder is a map or list that objects add to.
type holder struct {
	path, expression string
	empty            string // the literal that creates it
	inContainers     bool
	wanted           string // whether an object that adds to it selects the pod
}

// holders returns what the objects add to.
func holders(objects []*object) []*holder {
	var out []*holder
	for _, o := range objects {
		add := func(h holder) {
			if i := slices.IndexFunc(out, func(other *holder) bool { return other.path == h.path }); i >= 0 {
				out[i].wanted += " || variables." + o.selected
				return
			}
			h.wanted = "variables." + o.selected
			out = append(out, &h)
		}
		for _, m := range o.maps() {
			if len(m.wanted) > 0 {
				add(holder{path: quote(m.path), expression: m.of(), empty: "{}"})
			}
		}
		for _, l := range slices.Concat(podLists(&o.Spec), []list{tolerationsOf(&o.Spec)}, containerLists(&o.Spec)) {
			if len(l.elements) > 0 {
				add(holder{path: quote("/spec/" + l.field), expression: l.of("object.spec"), empty: "[]"})
			}
		}
		for _, l := range ownLists(&o.Spec) {
			if len(l.elements) > 0 {
				add(holder{path: pathInContainer(l.field), expression: l.of("c"), empty: "[]", inContainers: true})
			}
		}
	}
	return out
}
