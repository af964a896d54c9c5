// SPDX-License-Identifier: Apache-2.0

package persistentvolumelabel

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/internal/kube/nodeterms"
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
	terms, ok := readTerms(affinity)
	if !ok || a.mentionedIn(terms) {
		return patch, ok
	}
	b := jsonpatch.NewBuilderAt(at, affinity)
	list := []string{"required", "nodeSelectorTerms"}
	if len(terms) == 0 {
		b.Append(list, a.term())
	}
	for i := range terms {
		expressions := append(slices.Clone(list), strconv.Itoa(i), nodeterms.Expressions)
		for _, r := range a.required {
			b.Append(expressions, json.RawMessage(r.Raw))
		}
	}
	patch, err := b.AppendPatch(patch)
	return patch, err == nil
}

// isNull reports whether a field is absent or null, which means the same.
func isNull(value jsontext.Value) bool { return len(value) == 0 || value.Kind() == 'n' }

// readTerms returns the terms of a volume's node affinity. It reports false for a malformed affinity.
func readTerms(affinity jsontext.Value) (terms []nodeterms.Term, ok bool) {
	r, ok := rawjson.NewReader(affinity), true
	is := func(good bool) { ok = good && ok }
	is(object(&r, func(field []byte) {
		if string(field) == "required" {
			is(object(&r, func(field []byte) {
				if string(field) == "nodeSelectorTerms" {
					var valid bool
					terms, valid = nodeterms.Read(&r)
					is(valid)
				}
			}))
		}
	}))
	return terms, ok
}

// mentionedIn reports whether an expression uses a key of the requirements.
func (a *answer) mentionedIn(terms []nodeterms.Term) bool {
	for i := range terms {
		for _, e := range terms[i].Expressions {
			if _, mentioned := a.labels[e.Key]; mentioned {
				return true
			}
		}
	}
	return false
}
