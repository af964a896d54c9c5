// SPDX-License-Identifier: Apache-2.0

// Package decode reads objects from JSON as Kubernetes' own decoders do. It expects
// checked JSON without duplicate names or invalid UTF-8, see package rawjson.
package decode

import (
	standard "encoding/json"
	"reflect"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// Type decodes objects into one Go type.
type Type struct {
	elem    reflect.Type
	layout  *layout // nil if the type needs the general decoder
	options json.Options
}

// types caches decoders by type, because analysing a type is slow.
var types sync.Map // of *Type, by reflect.Type

// For returns the decoder of a type.
func For(typ reflect.Type) *Type {
	if t, ok := types.Load(typ); ok {
		return t.(*Type)
	}
	t, _ := types.LoadOrStore(typ, &Type{typ, newLayout(typ), decodeOptions(typ)})
	return t.(*Type)
}

// New returns a pointer to a new value decoded from raw. The value shares no memory
// with raw. New fills record unless it is nil. Release the record before raw changes.
// [Describe] explains errors.
func (t *Type) New(raw []byte, record *Record) (any, error) {
	pointer := reflect.New(t.elem)
	if t.layout != nil && t.layout.read(raw, pointer.UnsafePointer(), t.options, record) {
		record.of(t)
		return pointer.Interface(), nil
	}
	pointer.Elem().SetZero() // it may be partly filled
	err := json.Unmarshal(raw, pointer.Interface(), t.options)
	return pointer.Interface(), err
}

// decodeOptions give decoding the semantics of Kubernetes: encoding/json with
// case-sensitive names and integers that stay integers. They skip checks that the input
// has already passed.
func decodeOptions(typ reflect.Type) json.Options {
	options := []json.Options{
		jsonv1.DefaultOptionsV1(),
		json.MatchCaseInsensitiveNames(false),
		jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true),
		// Concerns existing values; there are none.
		jsonv1.MergeWithLegacySemantics(false),
		// Costs another pass over the object.
		jsonv1.ReportErrorsWithLegacySemantics(false),
	}
	w := typeWalk{seen: map[reflect.Type]bool{}, options: json.JoinOptions(options...)}
	w.walk(typ)
	if w.odd {
		options = append(options, jsonv1.ReportErrorsWithLegacySemantics(true))
	}
	if len(w.unmarshalers) > 0 {
		options = append(options, json.WithUnmarshalers(json.JoinUnmarshalers(w.unmarshalers...)))
	}
	return json.JoinOptions(options...)
}

// A typeWalk visits all types that decoding a type may reach.
type typeWalk struct {
	seen         map[reflect.Type]bool
	options      json.Options
	unmarshalers []*json.Unmarshalers // of types that encoding/json's successor reads otherwise
	odd          bool                 // some have tags that encoding/json accepts and its successor rejects
}

var (
	dynamics = json.UnmarshalFromFunc(func(dec *jsontext.Decoder, to *any) error {
		value, err := dec.ReadValue()
		if err == nil {
			*to, err = Tree(value)
		}
		return err
	})
	numbers = json.UnmarshalFromFunc(func(dec *jsontext.Decoder, to *standard.Number) error {
		value, err := dec.ReadValue()
		if err == nil {
			err = standard.Unmarshal(value, to)
		}
		return err
	})
)

func (w *typeWalk) walk(typ reflect.Type) {
	if w.seen[typ] {
		return
	}
	w.seen[typ] = true
	if typ.Kind() != reflect.Interface && reflect.PointerTo(typ).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return
	}
	switch typ.Kind() {
	case reflect.Interface:
		w.unmarshalers = append(w.unmarshalers, dynamics)
	case reflect.String:
		if typ == reflect.TypeFor[standard.Number]() {
			w.unmarshalers = append(w.unmarshalers, numbers)
		}
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		w.walk(typ.Elem())
	case reflect.Struct:
		if json.Unmarshal([]byte("{}"), reflect.New(typ).Interface(), w.options) != nil {
			w.odd = true
		}
		for field := range typ.Fields() {
			if field.IsExported() || field.Anonymous {
				w.walk(field.Type)
			}
		}
	}
}
