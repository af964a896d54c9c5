// SPDX-License-Identifier: Apache-2.0

// Package affinity edits the node affinity of a pod: in go spec.affinity in its original bytes and what plugins want, out come
// operations and the reason of each. It knows no datasets.
package affinity

import (
	"fmt"
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

// An Affinity is the node affinity of a pod while plugins add to it.
type Affinity struct {
	raw      jsontext.Value          // of spec.affinity, nil if absent
	Given    bool                    // the pod sets something about nodes
	selector []nodeterms.Requirement // from spec.nodeSelector

	came     []nodeterms.Term // the original terms
	required []nodeterms.Term
	// rewritten is set once a term has been multiplied.
	rewritten bool
	// Reasons are the reasons of added requirements, in order.
	Reasons []Reason
	// All also has the reasons of requirements that already existed, if Explain is set.
	Explain bool
	All     []Reason

	hadPreferred []nodeterms.Term
	Preferred    []Preferred // added
}

// Preferred is a term with a weight.
type Preferred struct {
	Weight      int
	Expressions []nodeterms.Requirement
	Reason      Reason
}

// Read returns the affinity of a pod with this spec.affinity, nil if absent, and node selector.
func Read(raw jsontext.Value, selector []nodeterms.Requirement) *Affinity {
	a := &Affinity{raw: raw, Given: len(selector) > 0 || len(raw) > 0, selector: selector}
	if !a.Given {
		return a
	}
	node, _ := rawjson.Lookup(raw, "nodeAffinity")
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

// Require makes nodes meet one of the alternatives in addition to the pod's own terms.
// A term that already requires one stays unchanged. So does an empty term, which
// matches no node and would otherwise match some. The error refuses the pod.
func (a *Affinity) Require(wanted nodeterms.Alternatives, reason Reason) error {
	if a.Explain {
		a.All = append(a.All, reason)
	}
	if len(a.required) == 0 {
		for _, list := range wanted {
			t := nodeterms.Term{Index: -1}
			a.required = append(a.required, t.With(list))
		}
		a.Reasons = append(a.Reasons, reason)
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
			return fmt.Errorf("the required node affinity would have more than %d terms: mount fewer datasets, or require fewer localities of them", maxTerms)
		}
	}
	a.required = out
	if changed {
		a.Reasons = append(a.Reasons, reason)
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
func (a *Affinity) check(reason Reason) error {
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
	return fmt.Errorf("no node can meet what is required together, of the label %s, by the pod's own node selector and node affinity and by %s: "+
		"mount datasets that are in the same place, or take one of the requirements back", about, reason.Source())
}

// Prefer adds preferred terms that do not exist yet. Duplicates count twice, as for the
// scheduler: as many wanted terms already exist as the pod came with. Existing terms
// keep their weight, which their author chose.
func (a *Affinity) Prefer(wanted []Preferred) {
	if a.Explain {
		for i := range wanted {
			a.All = append(a.All, wanted[i].Reason)
		}
	}
	if len(a.hadPreferred) == 0 {
		a.Preferred = append(a.Preferred, wanted...)
		return
	}
	taken := make([]bool, len(a.hadPreferred))
next:
	for i := range wanted {
		w := &wanted[i]
		for j := range a.hadPreferred {
			had := &a.hadPreferred[j]
			if !taken[j] && len(had.Fields) == 0 && len(had.Expressions) == len(w.Expressions) && had.HasAll(w.Expressions) {
				taken[j] = true
				continue next
			}
		}
		a.Preferred = append(a.Preferred, *w)
	}
}

// SpeaksOf returns a key accepted by names that the pod's author uses in a node
// selector or node affinity, except in exactly the requirements that would be added, or
// "".
func (a *Affinity) SpeaksOf(names func(key string) bool, own []nodeterms.Requirement) string {
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

// Emit adds the operations, with their reasons as origins.
func (a *Affinity) Emit(e *emit.Patch) {
	if len(a.Reasons) == 0 && len(a.Preferred) == 0 {
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
	case len(a.Reasons) == 0:
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
	for i, p := range a.Preferred {
		b.Append(list, p.appendJSON(nil))
		if e.Explains() {
			e.OriginAt(emit.Source(p.Reason.Source()), affinityPath+jsonpatch.Pointer(list...), len(a.hadPreferred)+i)
		}
	}
	e.Edit(b)
}

// emitWhole is [Affinity.Emit] for a pod without affinity.
func (a *Affinity) emitWhole(e *emit.Patch) {
	out := append(make([]byte, 0, 128+192*(len(a.Preferred)+len(a.required))), `{"nodeAffinity":{`...)
	if len(a.required) > 0 {
		out = append(nodeterms.AppendTerms(append(out, `"`+requiredField+`":{"nodeSelectorTerms":`...), a.required...), '}')
		for i := 0; e.Explains() && i < len(a.required); i++ {
			a.tell(e, affinityPath+jsonpatch.Pointer("nodeAffinity", requiredField, "nodeSelectorTerms", strconv.Itoa(i)), a.required[i].Added)
		}
	}
	if len(a.Preferred) > 0 {
		if len(a.required) > 0 {
			out = append(out, ',')
		}
		out = append(out, `"`+preferredField+`":[`...)
		for i := range a.Preferred {
			if i > 0 {
				out = append(out, ',')
			}
			out = a.Preferred[i].appendJSON(out)
			if e.Explains() {
				e.OriginAt(emit.Source(a.Preferred[i].Reason.Source()), affinityPath+jsonpatch.Pointer("nodeAffinity", preferredField), i)
			}
		}
		out = append(out, ']')
	}
	e.Add(affinityPath, append(out, '}', '}'))
}

// appendJSON encodes a preferred term in the field order of the API type.
func (p *Preferred) appendJSON(out []byte) []byte {
	out = strconv.AppendInt(append(out, `{"weight":`...), int64(p.Weight), 10)
	out = append(out, `,"preference":{"`+nodeterms.Expressions+`":`...)
	return append(nodeterms.AppendRequirements(out, p.Expressions), `}}`...)
}

// tell reports the reasons of added requirements.
func (a *Affinity) tell(e *emit.Patch, path string, added []nodeterms.Requirement) {
	if !e.Explains() {
		return
	}
	for _, reason := range a.Reasons {
		for i := range added {
			if reason.asksFor(&added[i]) {
				e.Origin(emit.Source(reason.Source()), path)
				break
			}
		}
	}
}
