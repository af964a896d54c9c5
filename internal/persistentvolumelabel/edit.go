// SPDX-License-Identifier: Apache-2.0

package persistentvolumelabel

import (
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// edit returns the patch that labels a volume. Unless its node affinity already uses
// one of the keys, the patch also adds all requirements to every term, because terms
// are alternatives. If affinity is false, it leaves the node affinity unchanged. It
// reports false for a malformed volume.
func edit(v *volume, a *answer, affinity bool) (jsonpatch.Patch, bool) {
	if !v.hasMetadata || !v.hasSpec {
		return nil, false
	}
	patch := make(jsonpatch.Patch, 0, 2)
	var ok bool
	if patch, ok = editLabels(patch, v.labels, a); ok && affinity {
		patch, ok = editAffinity(patch, v.affinity, a)
	}
	return patch, ok
}

func editLabels(patch jsonpatch.Patch, labels jsontext.Value, a *answer) (jsonpatch.Patch, bool) {
	const at = "/metadata/labels"
	if isNull(labels) {
		return append(patch, jsonpatch.Operation{Op: jsonpatch.Add, Path: at, Value: a.allLabels}), true
	}
	b := jsonpatch.NewBuilderAt(at, labels)
	for _, key := range slices.Sorted(maps.Keys(a.labels)) {
		b.Set(rawjson.AppendString(nil, a.labels[key]), key)
	}
	patch, err := b.AppendPatch(patch)
	return patch, err == nil
}

func editAffinity(patch jsonpatch.Patch, affinity jsontext.Value, a *answer) (jsonpatch.Patch, bool) {
	const at = "/spec/nodeAffinity"
	if isNull(affinity) {
		return append(patch, jsonpatch.Operation{Op: jsonpatch.Add, Path: at, Value: a.affinity}), true
	}
	terms, mentioned, ok := readAffinity(affinity, a.required)
	if !ok || mentioned {
		return patch, ok
	}
	b := jsonpatch.NewBuilderAt(at, affinity)
	list := []string{"required", "nodeSelectorTerms"}
	if terms == 0 {
		b.Append(list, a.term())
	}
	for i := range terms {
		expressions := append(slices.Clone(list), strconv.Itoa(i), "matchExpressions")
		for _, r := range a.required {
			b.Append(expressions, r.json())
		}
	}
	patch, err := b.AppendPatch(patch)
	return patch, err == nil
}

// isNull reports whether a field is absent or null, which means the same.
func isNull(value jsontext.Value) bool { return len(value) == 0 || value.Kind() == 'n' }

func (r requirement) json() []byte {
	out := rawjson.AppendString([]byte(`{"key":`), r.key)
	out = append(out, `,"operator":"In","values":[`...)
	for i, value := range r.values {
		if i > 0 {
			out = append(out, ',')
		}
		out = rawjson.AppendString(out, value)
	}
	return append(out, ']', '}')
}

// readAffinity counts the terms of a node affinity, and reports whether any expression
// uses a key of the requirements. It reports false for a malformed affinity.
func readAffinity(affinity jsontext.Value, required []requirement) (terms int, mentioned, ok bool) {
	r := rawjson.NewReader(affinity)
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
