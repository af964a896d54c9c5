// SPDX-License-Identifier: Apache-2.0

package nodeterms

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// The two lists of a term.
const (
	Expressions = "matchExpressions"
	Fields      = "matchFields"
)

// A List is one of the two lists of a term, with elements to add.
type List struct {
	Field  string
	Values []jsontext.Value
}

// Extend adds elements to lists of a term and copies everything else.
func Extend(term jsontext.Value, lists []List) jsontext.Value {
	out := append(make([]byte, 0, 2*len(term)+64), '{')
	member := func(name string) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(rawjson.AppendString(out, name), ':')
	}
	done := map[string]bool{}
	r := rawjson.NewReader(term)
	r.Object(func(field []byte) {
		name := string(field)
		member(name)
		i := slices.IndexFunc(lists, func(l List) bool { return l.Field == name && !done[name] })
		if i < 0 {
			out = append(out, r.Value()...)
			return
		}
		done[name] = true
		var all []jsontext.Value
		r.Array(func(int) { all = append(all, r.Value()) })
		out = appendList(out, append(all, lists[i].Values...))
	})
	for _, list := range lists {
		if !done[list.Field] {
			member(list.Field)
			out = appendList(out, list.Values)
		}
	}
	return append(out, '}')
}

// AppendTerms appends a list of terms.
func AppendTerms(out []byte, terms ...Term) []byte {
	encoded := make([]jsontext.Value, len(terms))
	for i := range terms {
		encoded[i] = terms[i].Encode()
	}
	return appendList(out, encoded)
}

// AppendRequirements appends a list of requirements.
func AppendRequirements(out []byte, list []Requirement) []byte { return appendList(out, raws(list)) }

func raws(list []Requirement) []jsontext.Value {
	out := make([]jsontext.Value, len(list))
	for i := range list {
		out[i] = list[i].Raw
	}
	return out
}

func appendList(out []byte, elements []jsontext.Value) []byte {
	out = append(out, '[')
	for i, element := range elements {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, element...)
	}
	return append(out, ']')
}
