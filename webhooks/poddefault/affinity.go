// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"

	"github.com/sallyport-io/sallyport/jsonpatch"
)

const (
	required  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferred = "preferredDuringSchedulingIgnoredDuringExecution"
)

// maxNodeTerms bounds what several objects with several terms each can multiply to.
const maxNodeTerms = 100

var nodeTermTokens = []string{"affinity", "nodeAffinity", required, "nodeSelectorTerms"}

// compileAffinity takes required node terms apart. One without expressions selects no
// node, and as one of several it means nothing.
func (c *Compiled) compileAffinity(affinity *corev1.Affinity) {
	if affinity == nil {
		return
	}
	if node := affinity.NodeAffinity; node != nil {
		if terms := node.RequiredDuringSchedulingIgnoredDuringExecution; terms != nil {
			for i := range terms.NodeSelectorTerms {
				if term := &terms.NodeSelectorTerms[i]; len(term.MatchExpressions)+len(term.MatchFields) > 0 {
					c.nodeTerms = append(c.nodeTerms, encode(term))
				}
			}
		}
		c.podLists = appendList(c, c.podLists, preferredNodeKind, node.PreferredDuringSchedulingIgnoredDuringExecution, "affinity", "nodeAffinity", preferred)
	}
	if pod := affinity.PodAffinity; pod != nil {
		c.podLists = appendList(c, c.podLists, podTermKind, pod.RequiredDuringSchedulingIgnoredDuringExecution, "affinity", "podAffinity", required)
		c.podLists = appendList(c, c.podLists, preferredPodTermKind, pod.PreferredDuringSchedulingIgnoredDuringExecution, "affinity", "podAffinity", preferred)
	}
	if pod := affinity.PodAntiAffinity; pod != nil {
		c.podLists = appendList(c, c.podLists, podTermKind, pod.RequiredDuringSchedulingIgnoredDuringExecution, "affinity", "podAntiAffinity", required)
		c.podLists = appendList(c, c.podLists, preferredPodTermKind, pod.PreferredDuringSchedulingIgnoredDuringExecution, "affinity", "podAntiAffinity", preferred)
	}
}

// nodeTerms are the required node terms of a pod while PodDefaults narrow them. A node
// must meet one of them.
type nodeTerms struct{ terms []nodeTerm }

type nodeTerm struct {
	value  jsontext.Value
	index  int       // in the pod; -1: it is new
	origin *Compiled // who changed it last; nil: nobody
}

// narrow has each term of the pod ask for what c wants too. Terms are alternatives, so
// that to add one would widen the choice of nodes. If c has several, each term of the
// pod becomes as many.
func (m *merge) narrow(c *Compiled) {
	if len(c.nodeTerms) == 0 {
		return
	}
	h := &m.pod.spec
	if h.terms == nil {
		h.terms = &nodeTerms{}
		raw, _ := jsonpatch.Lookup(h.raw, nodeTermTokens...)
		r := jsonpatch.NewReader(raw)
		r.Array(func(i int) { h.terms.terms = append(h.terms.terms, nodeTerm{value: r.Value(), index: i}) })
	}
	var narrowed, more []nodeTerm
	if len(h.terms.terms) == 0 {
		for _, wanted := range c.nodeTerms {
			more = append(more, nodeTerm{wanted, -1, c})
		}
	}
	for _, term := range h.terms.terms {
		if isEmptyTerm(term.value) || slices.ContainsFunc(c.nodeTerms, func(wanted jsontext.Value) bool { return len(missing(wanted, term.value)) == 0 }) {
			narrowed = append(narrowed, term)
			continue
		}
		for i, wanted := range c.nodeTerms {
			both := nodeTerm{extend(term.value, missing(wanted, term.value)), -1, c}
			if i == 0 {
				both.index = term.index
				narrowed = append(narrowed, both)
			} else {
				more = append(more, both)
			}
		}
	}
	if n := len(narrowed) + len(more); n > maxNodeTerms {
		m.conflicts = append(m.conflicts, conflict{object: c, alone: true, text: fmt.Sprintf("%s: required node affinity would have %d terms; at most %d are made", c, n, maxNodeTerms)})
		return
	}
	h.terms.terms = slices.Concat(narrowed, more)
}

// A termList is one of the two lists of a node term, and elements to add to it.
type termList struct {
	field  string
	values []jsontext.Value
}

// missing are the expressions of a wanted term that another does not have.
func missing(wanted, term jsontext.Value) []termList {
	var out []termList
	for _, field := range []string{"matchExpressions", "matchFields"} {
		list := termList{field: field}
		present := elementsOf(member(term, field))
		for _, expression := range elementsOf(member(wanted, field)) {
			if !slices.ContainsFunc(present, func(other jsontext.Value) bool { return len(subset(expression, other)) == 0 }) {
				list.values = append(list.values, expression)
			}
		}
		if len(list.values) > 0 {
			out = append(out, list)
		}
	}
	return out
}

func isEmptyTerm(term jsontext.Value) bool {
	return len(elementsOf(member(term, "matchExpressions")))+len(elementsOf(member(term, "matchFields"))) == 0
}

func elementsOf(list jsontext.Value) (out []jsontext.Value) {
	r := jsonpatch.NewReader(list)
	r.Array(func(int) { out = append(out, r.Value()) })
	return out
}

// extend adds elements to lists of an object, and copies all else as it is.
func extend(object jsontext.Value, lists []termList) jsontext.Value {
	out := append(make([]byte, 0, 2*len(object)+64), '{')
	appendMember := func(name, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(jsonpatch.AppendString(out, string(name)), ':')
		out = append(out, value...)
	}
	appendElements := func(elements []jsontext.Value) []byte {
		list := []byte{'['}
		for i, element := range elements {
			if i > 0 {
				list = append(list, ',')
			}
			list = append(list, element...)
		}
		return append(list, ']')
	}
	done := map[string]bool{}
	r := jsonpatch.NewReader(object)
	r.Object(func(name []byte) {
		field := string(name)
		value := r.Value()
		for _, list := range lists {
			if list.field == field && !done[field] {
				done[field] = true
				value = appendElements(append(elementsOf(value), list.values...))
			}
		}
		appendMember([]byte(field), value)
	})
	for _, list := range lists {
		if !done[list.field] {
			appendMember([]byte(list.field), appendElements(list.values))
		}
	}
	return append(out, '}')
}
