// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/cmd/internal/podview/emit"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/internal/kube/nodeterms"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// maxTerms limits the terms of a pod's required node affinity: alternatives from
// several Datasets multiply.
const maxTerms = 256

const (
	requiredField  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferredField = "preferredDuringSchedulingIgnoredDuringExecution"
	affinityPath   = "/spec/affinity"
)

// affinity is the node affinity of a pod while plugins add to it.
type affinity struct {
	raw      jsontext.Value          // of spec.affinity, nil if absent
	given    bool                    // the pod sets something about nodes
	selector []nodeterms.Requirement // from spec.nodeSelector

	came     []nodeterms.Term // the original terms
	required []nodeterms.Term
	// rewritten is set once a term has been multiplied.
	rewritten bool
	// reasons are the reasons of added requirements, in order.
	reasons []Reason
	// all also has the reasons of requirements that already existed, if explain is set.
	explain bool
	all     []Reason

	hadPreferred []nodeterms.Term
	preferred    []preferred // added
}

// preferred is a term with a weight.
type preferred struct {
	weight      int
	expressions []nodeterms.Requirement
	reason      Reason
}

func readAffinity(p *pod) *affinity {
	a := &affinity{raw: p.affinity, given: len(p.nodeSelector) > 0 || len(p.affinity) > 0}
	if !a.given {
		return a
	}
	for _, e := range p.nodeSelector {
		a.selector = append(a.selector, nodeterms.Requirement{Key: string(e.key), Operator: nodeterms.In, Values: []string{string(e.value)}})
	}
	node, _ := rawjson.Lookup(p.affinity, "nodeAffinity")
	r := rawjson.NewReader(node)
	r.Object(func(field []byte) {
		switch string(field) {
		case requiredField:
			r.Object(func(field []byte) {
				if string(field) == "nodeSelectorTerms" {
					a.required, _ = nodeterms.Read(&r)
				}
			})
		case preferredField:
			r.Array(func(int) {
				var had nodeterms.Term
				r.Object(func(field []byte) {
					if string(field) == "preference" {
						had = nodeterms.ReadTerm(r.Value())
					}
				})
				a.hadPreferred = append(a.hadPreferred, had)
			})
		}
	})
	a.came = a.required
	return a
}

// require makes nodes meet one of the alternatives in addition to the pod's own terms.
// A term that already requires one stays unchanged. So does an empty term, which
// matches no node and would otherwise match some. The error is a [refusal].
func (a *affinity) require(wanted nodeterms.Alternatives, reason Reason) error {
	if a.explain {
		a.all = append(a.all, reason)
	}
	if len(a.required) == 0 {
		for _, list := range wanted {
			t := nodeterms.Term{Index: -1}
			a.required = append(a.required, t.With(list))
		}
		a.reasons = append(a.reasons, reason)
		return a.check(reason)
	}
	changed := false
	var out []nodeterms.Term
	for i := range a.required {
		t := &a.required[i]
		if t.Empty() || hasOne(t, wanted) {
			out = append(out, *t)
			continue
		}
		changed = true
		for j, list := range wanted {
			next := t.With(list)
			if j > 0 && next.Index >= 0 {
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

func hasOne(t *nodeterms.Term, wanted nodeterms.Alternatives) bool {
	for _, list := range wanted {
		if t.HasAll(list) {
			return true
		}
	}
	return false
}

// check refuses terms that no node can meet.
func (a *affinity) check(reason Reason) error {
	about := ""
	for i := range a.required {
		t := &a.required[i]
		if t.Empty() {
			continue
		}
		about = t.Contradiction(a.selector)
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

// prefer adds preferred terms that do not exist yet. Duplicates count twice, as for the
// scheduler: as many wanted terms already exist as the pod came with. Existing terms
// keep their weight, which their author chose.
func (a *affinity) prefer(wanted []preferred) {
	if a.explain {
		for i := range wanted {
			a.all = append(a.all, wanted[i].reason)
		}
	}
	if len(a.hadPreferred) == 0 {
		a.preferred = append(a.preferred, wanted...)
		return
	}
	taken := make([]bool, len(a.hadPreferred))
next:
	for i := range wanted {
		w := &wanted[i]
		for j := range a.hadPreferred {
			had := &a.hadPreferred[j]
			if !taken[j] && len(had.Fields) == 0 && len(had.Expressions) == len(w.expressions) && had.HasAll(w.expressions) {
				taken[j] = true
				continue next
			}
		}
		a.preferred = append(a.preferred, *w)
	}
}

// speaksOf returns a key accepted by names that the pod's author uses in a node
// selector or node affinity, except in exactly the requirements that would be added, or
// "".
func (a *affinity) speaksOf(names func(key string) bool, own []nodeterms.Requirement) string {
	foreign := func(list []nodeterms.Requirement) string {
		for i := range list {
			if !names(list[i].Key) {
				continue
			}
			isOwn := false
			for j := range own {
				isOwn = isOwn || own[j].Same(&list[i])
			}
			if !isOwn {
				return list[i].Key
			}
		}
		return ""
	}
	for i := range a.selector {
		if names(a.selector[i].Key) {
			return a.selector[i].Key
		}
	}
	for i := range a.came {
		if key := foreign(a.came[i].Expressions); key != "" {
			return key
		}
	}
	for i := range a.hadPreferred {
		if key := foreign(a.hadPreferred[i].Expressions); key != "" {
			return key
		}
	}
	return ""
}

// emit adds the operations, with their reasons as origins.
func (a *affinity) emit(e *emit.Patch) {
	if len(a.reasons) == 0 && len(a.preferred) == 0 {
		return
	}
	if len(a.raw) == 0 || a.raw.Kind() == 'n' {
		a.emitWhole(e)
		return
	}
	b := jsonpatch.NewBuilderAt(affinityPath, a.raw)
	terms := []string{"nodeAffinity", requiredField, "nodeSelectorTerms"}
	termsPath := affinityPath + jsonpatch.Pointer(terms...)
	switch {
	case len(a.reasons) == 0:
	case len(a.came) == 0:
		for i := range a.required {
			b.Append(terms, a.required[i].Encode())
			a.tell(e, termsPath+"/"+strconv.Itoa(i), a.required[i].Added)
		}
	case a.rewritten:
		b.Set(nodeterms.AppendTerms(nil, a.required...), terms...)
		for i := range a.required {
			a.tell(e, termsPath+"/"+strconv.Itoa(i), a.required[i].Added)
		}
	default:
		for i := range a.required {
			t := &a.required[i]
			if len(t.Added) == 0 {
				continue
			}
			at := slices.Concat(terms, []string{strconv.Itoa(i), "matchExpressions"})
			had := len(t.Expressions) - len(t.Added)
			for j, r := range t.Added {
				b.Append(at, []byte(r.Raw))
				a.tell(e, affinityPath+jsonpatch.Pointer(at...)+"/"+strconv.Itoa(had+j), []nodeterms.Requirement{r})
			}
		}
	}
	list := []string{"nodeAffinity", preferredField}
	for i, p := range a.preferred {
		b.Append(list, p.appendJSON(nil))
		if e.Explains() {
			e.OriginAt(emit.Source(p.reason.Source()), affinityPath+jsonpatch.Pointer(list...), len(a.hadPreferred)+i)
		}
	}
	e.Edit(b)
}

// emitWhole is [affinity.emit] for a pod without affinity.
func (a *affinity) emitWhole(e *emit.Patch) {
	out := append(make([]byte, 0, 128+192*(len(a.preferred)+len(a.required))), `{"nodeAffinity":{`...)
	if len(a.required) > 0 {
		out = append(nodeterms.AppendTerms(append(out, `"`+requiredField+`":{"nodeSelectorTerms":`...), a.required...), '}')
		for i := 0; e.Explains() && i < len(a.required); i++ {
			a.tell(e, affinityPath+jsonpatch.Pointer("nodeAffinity", requiredField, "nodeSelectorTerms", strconv.Itoa(i)), a.required[i].Added)
		}
	}
	if len(a.preferred) > 0 {
		if len(a.required) > 0 {
			out = append(out, ',')
		}
		out = append(out, `"`+preferredField+`":[`...)
		for i := range a.preferred {
			if i > 0 {
				out = append(out, ',')
			}
			out = a.preferred[i].appendJSON(out)
			if e.Explains() {
				e.OriginAt(emit.Source(a.preferred[i].reason.Source()), affinityPath+jsonpatch.Pointer("nodeAffinity", preferredField), i)
			}
		}
		out = append(out, ']')
	}
	e.Add(affinityPath, append(out, '}', '}'))
}

// appendJSON encodes a preferred term in the field order of the API type.
func (p *preferred) appendJSON(out []byte) []byte {
	out = strconv.AppendInt(append(out, `{"weight":`...), int64(p.weight), 10)
	out = append(out, `,"preference":{"`+nodeterms.Expressions+`":`...)
	return append(nodeterms.AppendRequirements(out, p.expressions), `}}`...)
}

// tell reports the reasons of added requirements.
func (a *affinity) tell(e *emit.Patch, path string, added []nodeterms.Requirement) {
	if !e.Explains() {
		return
	}
	for _, reason := range a.reasons {
		for i := range added {
			if reason.asksFor(&added[i]) {
				e.Origin(emit.Source(reason.Source()), path)
				break
			}
		}
	}
}
