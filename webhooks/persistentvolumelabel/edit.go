// SPDX-License-Identifier: Apache-2.0

package persistentvolumelabel

import (
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/jsonpatch"
)

// edit is the patch that labels a volume and, unless a term of its node affinity speaks
// of one of the keys already, has all requirements met by the nodes of every term. Terms
// are alternatives, so each needs them. It is false if the node affinity is none.
func edit(raw []byte, affinity jsontext.Value, labels map[string]string, required []requirement) (jsonpatch.Patch, bool) {
	b := jsonpatch.NewBuilder(raw)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		b.Set(jsonpatch.AppendString(nil, labels[key]), "metadata", "labels", key)
	}
	terms, mentioned, ok := readAffinity(affinity, required)
	if !ok {
		return nil, false
	}
	at := []string{"spec", "nodeAffinity", "required", "nodeSelectorTerms"}
	switch {
	case mentioned:
	case terms == 0:
		term := []byte(`{"matchExpressions":[`)
		for i, r := range required {
			if i > 0 {
				term = append(term, ',')
			}
			term = append(term, r.json()...)
		}
		b.Append(at, append(term, ']', '}'))
	default:
		for i := range terms {
			expressions := append(slices.Clone(at), strconv.Itoa(i), "matchExpressions")
			for _, r := range required {
				b.Append(expressions, r.json())
			}
		}
	}
	patch, err := b.Patch()
	return patch, err == nil
}

func (r requirement) json() jsontext.Value {
	out := jsonpatch.AppendString([]byte(`{"key":`), r.key)
	out = append(out, `,"operator":"In","values":[`...)
	for i, value := range r.values {
		if i > 0 {
			out = append(out, ',')
		}
		out = jsonpatch.AppendString(out, value)
	}
	return append(out, ']', '}')
}

// readAffinity counts the terms of a node affinity, and tells whether an expression of
// any of them is about a key of the requirements. It is false if it is none.
func readAffinity(affinity jsontext.Value, required []requirement) (terms int, mentioned, ok bool) {
	if len(affinity) == 0 {
		return 0, false, true
	}
	r := jsonpatch.NewReader(affinity)
	valid := true
	list := func(element func(int)) { valid = (r.Kind() == 'n' || r.Array(element)) && valid }
	is := func(good bool) { valid = good && valid }
	expression := func(int) {
		is(r.Object(func(field []byte) {
			if string(field) != "key" {
				return
			}
			key, isString := r.String()
			is(isString)
			mentioned = mentioned || slices.ContainsFunc(required, func(r requirement) bool { return r.key == string(key) })
		}))
	}
	term := func(int) {
		terms++
		is(r.Object(func(field []byte) {
			if string(field) == "matchExpressions" {
				list(expression)
			}
		}))
	}
	is(object(&r, func(field []byte) {
		if string(field) == "required" {
			is(object(&r, func(field []byte) {
				if string(field) == "nodeSelectorTerms" {
					list(term)
				}
			}))
		}
	}))
	return terms, mentioned, valid
}
