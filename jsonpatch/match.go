// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
)

// A matching covers the elements of two lists between their equal beginnings and ends.
type matching struct {
	plan          *plan // of an element
	key           string
	before, after reflect.Value
}

// match returns, for each element of the list after, its original in the list before,
// or -1.
func (d *differ) match(m *matching) []int {
	match := make([]int, m.after.Len())
	for i := range match {
		match[i] = -1
	}
	if m.before.Len() == 0 || m.after.Len() == 0 {
		return match
	}
	if before, after, ok := m.names(); ok {
		shared := repeated(before)
		maps.Copy(shared, repeated(after))
		common(d.contents(m, m.before, before, shared), d.contents(m, m.after, after, shared), match)
		if len(shared) > 0 {
			rest(before, after, match)
		}
		return match
	}
	stay := common(d.contents(m, m.before, nil, nil), d.contents(m, m.after, nil, nil), match)
	// Between two elements that stay in place, those without an equal were edited,
	// removed or added.
	used := make([]bool, m.before.Len())
	for _, from := range match {
		if from >= 0 {
			used[from] = true
		}
	}
	fromBefore, fromAfter := 0, 0
	for _, to := range append(stay, len(match)) {
		end := m.before.Len()
		if to < len(match) {
			end = match[to]
		}
		var olds, news []int
		for i := fromBefore; i < end; i++ {
			if !used[i] {
				olds = append(olds, i)
			}
		}
		for i := fromAfter; i < to; i++ {
			if match[i] < 0 {
				news = append(news, i)
			}
		}
		d.alike(m, olds, news, match)
		fromBefore, fromAfter = end+1, to+1
	}
	return match
}

// common matches equal strings: first a longest common subsequence, whose positions in
// after it returns, then the others in order.
func common(before, after []string, match []int) (stay []int) {
	positions := make(map[string][]int, len(before))
	for i, s := range before {
		positions[s] = append(positions[s], i)
	}
	pairs := 0
	for _, s := range after {
		pairs += len(positions[s])
	}
	// A longest common subsequence is a longest increasing subsequence of the positions
	// in before, where the positions of equal strings come in descending order, so that
	// no two of them match one element of after (Hunt and Szymanski). If there are too
	// many pairs, the nth occurrence of a string only matches the nth.
	var from, to []int
	if pairs <= maxPairs {
		for i, s := range after {
			for _, position := range slices.Backward(positions[s]) {
				from, to = append(from, position), append(to, i)
			}
		}
	} else {
		seen := make(map[string]int, len(positions))
		for i, s := range after {
			if n := seen[s]; n < len(positions[s]) {
				from, to = append(from, positions[s][n]), append(to, i)
				seen[s]++
			}
		}
	}
	for _, k := range increasing(from) {
		match[to[k]] = from[k]
		stay = append(stay, to[k])
	}
	if len(stay) < len(match) {
		rest(before, after, match)
	}
	return stay
}

// rest matches the remaining equal strings in order.
func rest(before, after []string, match []int) {
	matched := make([]bool, len(before))
	for _, from := range match {
		if from >= 0 {
			matched[from] = true
		}
	}
	free := map[string][]int{}
	for i, s := range before {
		if !matched[i] {
			free[s] = append(free[s], i)
		}
	}
	for i, s := range after {
		if match[i] < 0 && len(free[s]) > 0 {
			match[i] = free[s][0]
			free[s] = free[s][1:]
		}
	}
}

// repeated returns the strings that occur more than once.
func repeated(list []string) map[string]bool {
	seen, out := make(map[string]bool, len(list)), map[string]bool{}
	for _, s := range list {
		if seen[s] {
			out[s] = true
		}
		seen[s] = true
	}
	return out
}

// maxPairs bounds the work for lists of many equal elements.
const maxPairs = 1 << 16

// names returns the name of each element: by the key of the list's type, or by a member
// that all elements have with distinct values.
func (m *matching) names() (before, after []string, ok bool) {
	if m.key != "" {
		before, ok = m.named(m.before, m.key, false)
		if ok {
			after, ok = m.named(m.after, m.key, false)
		}
		if ok {
			return before, after, true
		}
	}
	for _, key := range identities {
		if before, ok = m.named(m.before, key, true); !ok {
			continue
		}
		if after, ok = m.named(m.after, key, true); ok {
			return before, after, true
		}
	}
	return nil, nil, false
}

// identities are the members that identify elements in lists whose type has no key: the
// patchMergeKeys of the Kubernetes API, and id.
var identities = []string{"name", "uid", "id", "key", "type", "mountPath", "devicePath", "containerPort", "port", "ip", "topologyKey"}

// named returns the values of a member of all elements. Strict requires them to exist,
// to be non-empty and to be distinct.
func (m *matching) named(list reflect.Value, key string, strict bool) ([]string, bool) {
	names := make([]string, list.Len())
	var seen map[string]bool
	if strict {
		seen = make(map[string]bool, len(names))
	}
	for i := range names {
		name, ok := nameOf(m.plan, list.Index(i), key)
		if !ok || strict && (name == "" || name == "0" || seen[name]) {
			return nil, false
		}
		names[i] = name
		if strict {
			seen[name] = true
		}
	}
	return names, true
}

// nameOf returns the string or integer that an element has under name.
func nameOf(p *plan, v reflect.Value, name string) (string, bool) {
	p, v, ok := indirect(p, v)
	if !ok {
		return "", false
	}
	switch {
	case p.kind == object:
		f := p.member(name)
		if f == nil {
			return "", false
		}
		member, ok := f.value(v)
		if !ok {
			return "", false
		}
		if p, v, ok = indirect(f.plan, member); !ok {
			return "", false
		}
	case p.kind == mapping && v.Type().Key().Kind() == reflect.String:
		member := v.MapIndex(reflect.ValueOf(name).Convert(v.Type().Key()))
		if !member.IsValid() {
			return "", false
		}
		if p, v, ok = indirect(p.elem, member); !ok {
			return "", false
		}
	default:
		return "", false
	}
	switch {
	case v.Kind() == reflect.String:
		return v.String(), true
	case p.kind == signed:
		return strconv.FormatInt(v.Int(), 10), true
	case p.kind == unsigned:
		return strconv.FormatUint(v.Uint(), 10), true
	case p.kind == float:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64), true
	}
	return "", false
}

// indirect follows pointers and interfaces to the value. It reports false if one is nil.
func indirect(p *plan, v reflect.Value) (_ *plan, _ reflect.Value, ok bool) {
	for p.kind == pointer || p.kind == dynamic {
		if v.IsNil() {
			return nil, v, false
		}
		v = v.Elem()
		if p.kind == pointer {
			p = p.elem
		} else {
			p = planOf(v.Type())
		}
	}
	return p, v, true
}

// contents returns the JSON of each element. If there are names it returns these
// instead, followed by the JSON where elements share a name.
func (d *differ) contents(m *matching, list reflect.Value, names []string, shared map[string]bool) []string {
	out := slices.Clone(names)
	if out == nil {
		out = make([]string, list.Len())
	}
	for i, name := range out {
		if names != nil && !shared[name] {
			continue
		}
		value, err := m.plan.encode(list.Index(i))
		if err != nil {
			d.fail(err)
		}
		out[i] = name + "\x00" + string(value)
	}
	return out
}

// maxLikeness limits the pairs of elements whose likeness is computed.
const maxLikeness = 10_000

// alike matches elements before and after, in order, with the greatest total likeness.
// Where equally many remain on both sides, they are matched one by one: an edit is more
// likely than a removal and an addition at one place. Scalars have no likeness.
//
// Patches that match by place alone are as short, but where one element was edited and
// another removed or added, they would give members that the type does not know to the
// wrong one.
func (d *differ) alike(m *matching, olds, news []int, match []int) {
	oneByOne := func(olds, news []int) {
		for k := range min(len(olds), len(news)) {
			match[news[k]] = olds[k]
		}
	}
	switch {
	case len(olds) == 0 || len(news) == 0:
		return
	case !composed(m.plan, m.before.Index(olds[0])), len(olds)*len(news) > maxLikeness:
		oneByOne(olds, news)
		return
	}
	// best is the greatest likeness of olds[i:] and news[j:], at i*width+j.
	width := len(news) + 1
	best := make([]int, (len(olds)+1)*width)
	score := make([]int, len(best))
	for i := len(olds) - 1; i >= 0; i-- {
		for j := len(news) - 1; j >= 0; j-- {
			at := i*width + j
			score[at] = d.likeness(m.plan, m.before.Index(olds[i]), m.after.Index(news[j]))
			best[at] = max(best[at+1], best[at+width], best[at+width+1]+score[at])
		}
	}
	inPlace := 0
	for i := range min(len(olds), len(news)) {
		inPlace += score[i*width+i]
	}
	if len(olds) == len(news) && inPlace == best[0] {
		oneByOne(olds, news)
		return
	}
	var i, j, fromI, fromJ int
	for i < len(olds) && j < len(news) {
		at := i*width + j
		switch {
		case score[at] > 0 && best[at] == best[at+width+1]+score[at]:
			match[news[j]] = olds[i]
			if i-fromI == j-fromJ {
				oneByOne(olds[fromI:i], news[fromJ:j])
			}
			i, j = i+1, j+1
			fromI, fromJ = i, j
		case best[at] == best[at+width]:
			i++
		default:
			j++
		}
	}
	if len(olds)-fromI == len(news)-fromJ {
		oneByOne(olds[fromI:], news[fromJ:])
	}
}

// composed reports whether a value has members.
func composed(p *plan, v reflect.Value) bool {
	p, _, ok := indirect(p, v)
	return ok && (p.kind == object || p.kind == mapping)
}

// likeness returns the number of members that two values have in common, or 0 if more
// differ.
func (d *differ) likeness(p *plan, before, after reflect.Value) int {
	x, before, ok := indirect(p, before)
	if !ok {
		return 0
	}
	y, after, ok := indirect(p, after)
	if !ok || x.typ != y.typ {
		return 0
	}
	equal, different := 0, 0
	switch x.kind {
	case object:
		for i := range x.fields {
			f := &x.fields[i]
			b, wrote := f.value(before)
			wrote = wrote && !f.omitted(b)
			a, writes := f.value(after)
			writes = writes && !f.omitted(a)
			switch {
			case !wrote && !writes:
			case wrote && writes && d.probe(f.plan, b, a):
				equal++
			default:
				different++
			}
		}
	case mapping:
		different = after.Len()
		for it := before.MapRange(); it.Next(); {
			switch a := after.MapIndex(it.Key()); {
			case !a.IsValid():
				different++
			case d.probe(x.elem, it.Value(), a):
				equal++
				different--
			}
		}
	}
	if equal < different {
		return 0
	}
	return equal
}
