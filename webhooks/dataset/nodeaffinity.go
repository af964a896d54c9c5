// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/jsonpatch"
)

// maxTerms bounds the terms of a pod's required node affinity: what is asked for by
// several who have alternatives each is their product.
const maxTerms = 256

const (
	requiredField  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferredField = "preferredDuringSchedulingIgnoredDuringExecution"
	affinityPath   = "/spec/affinity"
)

// affinity is the node affinity of a pod while plugins add to it.
type affinity struct {
	raw      jsontext.Value // of spec.affinity, nil if nothing stands there
	selector []requirement  // what spec.nodeSelector asks for

	came     []term // that the pod came with
	required []term
	// rewritten is set once a term has become several.
	rewritten bool
	// reasons are why the requirements were added, in their order.
	reasons []Reason
	// all are the reasons of what is wanted, also of what was there.
	all []Reason

	hadPreferred []preferred
	preferred    []preferred // added
}

// preferred is a term with a weight.
type preferred struct {
	weight int
	term   term
	reason Reason
}

func readAffinity(p *pod) *affinity {
	a := &affinity{raw: p.affinity}
	for _, e := range p.nodeSelector {
		a.selector = append(a.selector, requirement{key: string(e.key), operator: opIn, values: []string{string(e.value)}})
	}
	node, _ := jsonpatch.Lookup(p.affinity, "nodeAffinity")
	r := jsonpatch.NewReader(node)
	r.Object(func(field []byte) {
		switch string(field) {
		case requiredField:
			r.Object(func(field []byte) {
				if string(field) == "nodeSelectorTerms" {
					a.required = parseTerms(r.Value())
				}
			})
		case preferredField:
			r.Array(func(int) {
				var had preferred
				r.Object(func(field []byte) {
					switch string(field) {
					case "weight":
						had.weight, _ = strconv.Atoi(string(r.Value()))
					case "preference":
						had.term = parseTerm(r.Value())
					}
				})
				a.hadPreferred = append(a.hadPreferred, had)
			})
		}
	})
	a.came = a.required
	return a
}

// require makes nodes meet one of the alternatives, beside what the pod asks for. A term
// that asks for one of them already stays as it is, and so does an empty one: it is met
// by no node, and would be met by some. The error is a [refusal].
func (a *affinity) require(wanted alternatives, reason Reason) error {
	a.all = append(a.all, reason)
	if len(a.required) == 0 {
		for _, list := range wanted {
			t := term{index: -1}
			a.required = append(a.required, t.with(list))
		}
		a.reasons = append(a.reasons, reason)
		return a.check(reason)
	}
	changed := false
	var out []term
	for i := range a.required {
		t := &a.required[i]
		if t.empty() || hasOne(t, wanted) {
			out = append(out, *t)
			continue
		}
		changed = true
		for j, list := range wanted {
			next := t.with(list)
			if j > 0 && next.index >= 0 {
				a.rewritten = true
			}
			out = append(out, next)
		}
		if len(out) > maxTerms {
			return refusef("the required node affinity would have more than %d terms: mount fewer datasets, or require fewer localities of them", maxTerms)
		}
	}
	a.required = out
	if changed {
		a.reasons = append(a.reasons, reason)
	}
	return a.check(reason)
}

func hasOne(t *term, wanted alternatives) bool {
	for _, list := range wanted {
		if t.hasAll(list) {
			return true
		}
	}
	return false
}

// check refuses what no node can meet.
func (a *affinity) check(reason Reason) error {
	about := ""
	for i := range a.required {
		t := &a.required[i]
		if t.empty() {
			continue
		}
		about = t.contradiction(a.selector)
		if about == "" {
			return nil
		}
	}
	if about == "" {
		return nil
	}
	return refusef("no node can meet what is required together, of the label %s, by the pod's own node selector and node affinity and by %s: "+
		"mount datasets that are in the same place, or take one of the requirements back", about, reason.Source())
}

// prefer adds preferred terms that are not there yet. Two that are the same count twice,
// as they do for the scheduler: of what is wanted so many are there already as the pod
// came with. The weight of one that is there does not count: it is its author's choice.
func (a *affinity) prefer(wanted []preferred) {
	taken := make([]bool, len(a.hadPreferred))
next:
	for _, w := range wanted {
		a.all = append(a.all, w.reason)
		for i, had := range a.hadPreferred {
			if !taken[i] && len(had.term.fields) == 0 && len(had.term.expressions) == len(w.term.expressions) && had.term.hasAll(w.term.expressions) {
				taken[i] = true
				continue next
			}
		}
		a.preferred = append(a.preferred, w)
	}
}

// speaksOf returns a key, of those that have a name, about which the pod's author says
// something: in a node selector or node affinity, save for what is just what would be
// added. It is empty if there is none.
func (a *affinity) speaksOf(names func(key string) bool, own []requirement) string {
	foreign := func(list []requirement) string {
		for i := range list {
			if !names(list[i].key) {
				continue
			}
			isOwn := false
			for j := range own {
				isOwn = isOwn || own[j].same(&list[i])
			}
			if !isOwn {
				return list[i].key
			}
		}
		return ""
	}
	for i := range a.selector {
		if names(a.selector[i].key) {
			return a.selector[i].key
		}
	}
	for i := range a.came {
		if key := foreign(a.came[i].expressions); key != "" {
			return key
		}
	}
	for i := range a.hadPreferred {
		if key := foreign(a.hadPreferred[i].term.expressions); key != "" {
			return key
		}
	}
	return ""
}

// emit adds the operations, and tells the reasons by their paths.
func (a *affinity) emit(patch jsonpatch.Patch, told func(path string, reason Reason)) (jsonpatch.Patch, error) {
	if len(a.reasons) == 0 && len(a.preferred) == 0 {
		return patch, nil
	}
	b := jsonpatch.NewBuilderAt(affinityPath, a.raw)
	terms := []string{"nodeAffinity", requiredField, "nodeSelectorTerms"}
	termsPath := affinityPath + jsonpatch.Pointer(terms...)
	switch {
	case len(a.reasons) == 0:
	case len(a.came) == 0:
		for i := range a.required {
			b.Append(terms, a.required[i].encode())
			a.tell(told, termsPath+"/"+strconv.Itoa(i), a.required[i].added)
		}
	case a.rewritten:
		all := jsontext.Value{'['}
		for i := range a.required {
			if i > 0 {
				all = append(all, ',')
			}
			if t := &a.required[i]; len(t.added) == 0 {
				all = append(all, t.raw...)
			} else {
				all = append(all, t.encode()...)
				a.tell(told, termsPath+"/"+strconv.Itoa(i), t.added)
			}
		}
		b.Set(append(all, ']'), terms...)
	default:
		for i := range a.required {
			t := &a.required[i]
			if len(t.added) == 0 {
				continue
			}
			at := append(terms[:len(terms):len(terms)], strconv.Itoa(i), "matchExpressions")
			had := len(t.expressions) - len(t.added)
			for j, r := range t.added {
				b.Append(at, r.raw)
				a.tell(told, affinityPath+jsonpatch.Pointer(at...)+"/"+strconv.Itoa(had+j), []requirement{r})
			}
		}
	}
	list := []string{"nodeAffinity", preferredField}
	for i, p := range a.preferred {
		value := append([]byte(`{"weight":`), strconv.Itoa(p.weight)...)
		value = append(append(value, `,"preference":`...), p.term.encode()...)
		b.Append(list, append(value, '}'))
		told(affinityPath+jsonpatch.Pointer(list...)+"/"+strconv.Itoa(len(a.hadPreferred)+i), p.reason)
	}
	return b.AppendPatch(patch)
}

// tell says why requirements were added: those who asked for one of them.
func (a *affinity) tell(told func(string, Reason), path string, added []requirement) {
	for _, reason := range a.reasons {
		for i := range added {
			if reason.asksFor(&added[i]) {
				told(path, reason)
				break
			}
		}
	}
}
