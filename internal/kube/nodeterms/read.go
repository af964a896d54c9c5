// SPDX-License-Identifier: Apache-2.0

package nodeterms

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// Read reads a list of terms, or null. It reports false if it is something else, or if something in it is malformed,
// which is left out.
func Read(r *rawjson.Reader) (terms []Term, ok bool) {
	ok = true
	array(r, &ok, func(index int) {
		terms = append(terms, readTerm(r, &ok))
		terms[index].Index = index
	})
	return terms, ok
}

// ReadTerm reads one term.
func ReadTerm(raw jsontext.Value) Term {
	r, ok := rawjson.NewReader(raw), true
	return readTerm(&r, &ok)
}

// Each calls visit with the bytes of each requirement of a term until it returns false. It costs less than [ReadTerm].
func Each(term jsontext.Value, visit func(field string, requirement jsontext.Value) bool) {
	r := rawjson.NewReader(term)
	r.Object(func(name []byte) {
		field := Expressions
		switch string(name) {
		case Expressions:
		case Fields:
			field = Fields
		default:
			return
		}
		r.Array(func(int) {
			if !visit(field, r.Value()) {
				r.Stop()
			}
		})
	})
}

func readTerm(r *rawjson.Reader, ok *bool) (t Term) {
	start := r.Offset()
	*ok = r.Object(func(field []byte) {
		switch string(field) {
		case Expressions:
			t.Expressions = readRequirements(r, ok)
		case Fields:
			t.Fields = readRequirements(r, ok)
		}
	}) && *ok
	t.Raw = r.Since(start)
	return t
}

func readRequirements(r *rawjson.Reader, ok *bool) (list []Requirement) {
	array(r, ok, func(int) {
		start := r.Offset()
		var q Requirement
		*ok = r.Object(func(field []byte) {
			switch string(field) {
			case "key":
				q.Key = text(r, ok)
			case "operator":
				q.Operator = text(r, ok)
			case "values":
				array(r, ok, func(int) { q.Values = append(q.Values, text(r, ok)) })
			}
		}) && *ok
		q.Raw = r.Since(start)
		list = append(list, q)
	})
	return list
}

func array(r *rawjson.Reader, ok *bool, element func(int)) {
	if r.Kind() != 'n' {
		*ok = r.Array(element) && *ok
	}
}

func text(r *rawjson.Reader, ok *bool) string {
	out, is := r.String()
	*ok = *ok && is
	return string(out)
}
