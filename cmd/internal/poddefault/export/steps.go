// SPDX-License-Identifier: Apache-2.0

package export

import (
	"slices"
	"unicode/utf8"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
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
		for _, e := range m.wanted {
			places = append(places, m.path+" "+e.Key)
		}
	}
	o.EachList(func(id string, _ *plan.ListKind, items []plan.Item) {
		if id == plan.InitContainersList {
			id = plan.ContainersList // they share their names
		}
		for _, item := range items {
			places = append(places, id+" "+item.Key)
		}
	})
	_, commands := o.ownScalars()
	for _, c := range commands {
		places = append(places, c.field)
	}
	for _, field := range ordered {
		if o.value(field) != nil {
			places = append(places, field)
		}
	}
	return places
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
		for _, m := range o.maps(o.mark()) {
			if len(m.wanted) > 0 {
				add(holder{path: quote(m.path), expression: m.of(), empty: "{}"})
			}
		}
		for _, l := range slices.Concat(o.podLists(), []list{o.tolerations()}, o.containerLists()) {
			if len(l.elements) > 0 {
				add(holder{path: quote("/spec/" + l.field), expression: l.of("object.spec"), empty: "[]"})
			}
		}
		for _, l := range o.ownLists() {
			if len(l.elements) > 0 {
				add(holder{path: pathInContainer(l.field), expression: l.of("c"), empty: "[]", inContainers: true})
			}
		}
	}
	return out
}
