// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/validate"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

const (
	required  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferred = "preferredDuringSchedulingIgnoredDuringExecution"
)

var nodeTermTokens = []string{"affinity", "nodeAffinity", required, "nodeSelectorTerms"}

// compileAffinity splits required node terms. A term without expressions selects no
// node, and has no effect next to other terms.
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
// must match at least one.
type nodeTerms struct{ terms []nodeTerm }

type nodeTerm struct {
	value  jsontext.Value
	index  int       // in the pod; -1 for a new term
	origin *Compiled // last to change it; nil if unchanged
	parsed *parsedTerm
}

func (t *nodeTerm) parse(b *bounds) *parsedTerm {
	if t.parsed == nil {
		t.parsed = parseTerm(t.value, b)
	}
	return t.parsed
}

// narrow adds c's requirements to each term of the pod. Terms are alternatives, so
// adding a term would widen the choice of nodes. If c has several terms, each term of
// the pod is multiplied.
func (m *merge) narrow(c *Compiled) {
	if len(c.nodeTerms) == 0 {
		return
	}
	h, b := &m.pod.spec, &m.pod.bounds
	if h.terms == nil {
		h.terms = &nodeTerms{}
		raw, _ := h.lookup(nodeTermTokens...)
		r := rawjson.NewReader(raw)
		r.Array(func(i int) {
			if !b.reads() {
				r.Stop()
				return
			}
			h.terms.terms = append(h.terms.terms, nodeTerm{value: r.Value(), index: i})
		})
	}
	terms := h.terms.terms
	wanted := make([]nodeTerm, len(c.nodeTerms))
	for i, value := range c.nodeTerms {
		wanted[i] = nodeTerm{value: value, index: -1, origin: c}
		if len(terms) > 0 {
			wanted[i].parse(b)
		}
	}
	// Count the terms before creating any.
	satisfied := make([]bool, len(terms))
	n := len(terms)
	if n == 0 {
		n = len(wanted)
	}
	for i := range terms {
		if n > validate.MaxNodeTerms || b.spent() {
			break
		}
		term := terms[i].parse(b)
		satisfied[i] = term.empty() || slices.ContainsFunc(wanted, func(w nodeTerm) bool { return len(term.missing(w.parse(b), b)) == 0 })
		if !satisfied[i] {
			n += len(wanted) - 1
		}
	}
	if n > validate.MaxNodeTerms {
		m.conflict(conflict{object: c, alone: true}, "%s: required node affinity would have more than %d terms", c, validate.MaxNodeTerms)
		return
	}
	if b.spent() {
		return
	}
	if len(terms) == 0 {
		for _, w := range wanted {
			b.grow(len(w.value))
		}
		h.terms.terms = wanted
		return
	}
	narrowed, more := make([]nodeTerm, 0, n), []nodeTerm(nil)
	for i := range terms {
		term := terms[i]
		if satisfied[i] {
			narrowed = append(narrowed, term)
			continue
		}
		for j := range wanted {
			if b.spent() {
				return
			}
			lacks := term.parse(b).missing(wanted[j].parse(b), b)
			both := nodeTerm{value: extend(term.value, lacks), index: -1, origin: c}
			b.grow(len(both.value))
			if j == 0 {
				both.index = term.index
				narrowed = append(narrowed, both)
			} else {
				more = append(more, both)
			}
		}
	}
	narrowed = append(narrowed, more...)
	h.terms.terms = narrowed
}

// nodeTermFields are the two lists of a node term.
var nodeTermFields = [2]string{"matchExpressions", "matchFields"}

// A termList is one of the two lists of a node term, with elements to add.
type termList struct {
	field  string
	values []jsontext.Value
}

// A parsedTerm holds the expressions of both lists of a term.
type parsedTerm [2]struct {
	expressions []expression
	byKey       map[string][]int // positions by key and operator
}

type expression struct {
	raw  jsontext.Value
	tree any
	key  string // with its operator
}

func parseTerm(raw jsontext.Value, b *bounds) *parsedTerm {
	term := &parsedTerm{}
	for i, field := range nodeTermFields {
		list := &term[i]
		list.byKey = map[string][]int{}
		r := rawjson.NewReader(member(raw, field))
		r.Array(func(at int) {
			if b.did(workOfVisit); b.spent() {
				r.Stop()
				return
			}
			e := expression{raw: r.Value()}
			b.did(len(e.raw) + workOfComparison)
			e.tree = decode(e.raw)
			if object, ok := e.tree.(map[string]any); ok {
				key, _ := object["key"].(string)
				operator, _ := object["operator"].(string)
				e.key = operator + " " + key
			}
			list.expressions = append(list.expressions, e)
			list.byKey[e.key] = append(list.byKey[e.key], at)
		})
	}
	return term
}

func (t *parsedTerm) empty() bool { return len(t[0].expressions)+len(t[1].expressions) == 0 }

// missing returns the expressions of a wanted term that this one lacks.
func (t *parsedTerm) missing(wanted *parsedTerm, b *bounds) []termList {
	var out []termList
	for i, field := range nodeTermFields {
		present, list := &t[i], termList{field: field}
		for _, w := range wanted[i].expressions {
			has := func(at int) bool {
				b.did(workOfVisit + len(w.raw)/8)
				return len(unmet(nil, "", w.tree, present.expressions[at].tree)) == 0
			}
			if b.did(workOfVisit); b.spent() {
				return nil
			}
			if !slices.ContainsFunc(present.byKey[w.key], has) {
				list.values = append(list.values, w.raw)
			}
		}
		if len(list.values) > 0 {
			out = append(out, list)
		}
	}
	return out
}

func elementsOf(list jsontext.Value) (out []jsontext.Value) {
	r := rawjson.NewReader(list)
	r.Array(func(int) { out = append(out, r.Value()) })
	return out
}

// extend adds elements to lists of an object and copies everything else.
func extend(object jsontext.Value, lists []termList) jsontext.Value {
	out := append(make([]byte, 0, 2*len(object)+64), '{')
	appendMember := func(name, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(rawjson.AppendString(out, string(name)), ':')
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
	r := rawjson.NewReader(object)
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
