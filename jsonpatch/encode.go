// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// maxNesting limits the depth of values, as jsontext does. Deeper ones most likely contain
// themselves.
const maxNesting = 10_000

// AppendValue appends a value as encoding/json encodes it, in a fraction of the time,
// but does not escape <, > and &. An error means that a value has no JSON form. It may
// repeat parts of the value.
func AppendValue(dst []byte, value any) ([]byte, error) {
	v := reflect.ValueOf(value)
	if !v.IsValid() {
		return append(dst, "null"...), nil
	}
	return planOf(v.Type()).append(dst, v, 0)
}

func (p *plan) encode(v reflect.Value) (json.RawMessage, error) {
	var dst []byte
	if p.kind >= pointer {
		dst = make([]byte, 0, 128)
	}
	return p.append(dst, v, 0)
}

// append appends v as encoding/json encodes it, but does not escape <, > and &.
func (p *plan) append(dst []byte, v reflect.Value, depth int) ([]byte, error) {
	if depth++; depth > maxNesting {
		return nil, fmt.Errorf("%s is nested deeper than %d levels", p.typ, maxNesting)
	}
	switch p.kind {
	case boolean:
		return strconv.AppendBool(dst, v.Bool()), nil
	case signed:
		return strconv.AppendInt(dst, v.Int(), 10), nil
	case unsigned:
		return strconv.AppendUint(dst, v.Uint(), 10), nil
	case text:
		return rawjson.AppendString(dst, v.String()), nil
	case binary:
		if v.IsNil() {
			return append(dst, "null"...), nil
		}
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, v.Bytes())
		return append(dst, '"'), nil
	case quoted:
		// A string in a string, both escaped in encoding/json's way. The inner one is
		// now text.
		value, err := json.Marshal(v.Interface())
		if err != nil || string(value) == "null" {
			return append(dst, value...), err
		}
		return rawjson.AppendString(dst, string(value)), nil
	case pointer:
		if v.IsNil() {
			return append(dst, "null"...), nil
		}
		return p.elem.append(dst, v.Elem(), depth)
	case object:
		return p.appendObject(dst, v, depth)
	case list, array:
		return p.appendList(dst, v, depth)
	case mapping:
		return p.appendMap(dst, v, depth)
	case dynamic:
		if v.IsNil() {
			return append(dst, "null"...), nil
		}
		return appendTree(dst, v.Interface(), depth)
	default: // encoding/json handles it or reports an error
		value := v.Interface
		if v.CanAddr() {
			value = v.Addr().Interface
		}
		out, err := json.Marshal(value())
		return append(dst, out...), err
	}
}

func (p *plan) appendObject(dst []byte, v reflect.Value, depth int) (_ []byte, err error) {
	separator := byte('{')
	for i := range p.fields {
		f := &p.fields[i]
		value, ok := f.value(v)
		if !ok || f.omitted(value) {
			continue
		}
		dst = append(dst, separator)
		separator = ','
		dst = append(rawjson.AppendString(dst, f.name), ':')
		if dst, err = f.plan.append(dst, value, depth); err != nil {
			return nil, err
		}
	}
	if separator == '{' {
		dst = append(dst, '{')
	}
	return append(dst, '}'), nil
}

func (p *plan) appendList(dst []byte, v reflect.Value, depth int) (_ []byte, err error) {
	if v.Kind() == reflect.Slice && v.IsNil() {
		return append(dst, "null"...), nil
	}
	dst = append(dst, '[')
	for i := range v.Len() {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = p.elem.append(dst, v.Index(i), depth); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

func (p *plan) appendMap(dst []byte, v reflect.Value, depth int) (_ []byte, err error) {
	if v.IsNil() {
		return append(dst, "null"...), nil
	}
	if p.typ == treeType {
		return appendTree(dst, v.Interface(), depth)
	}
	entries := make([]entry, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		name, err := keyName(it.Key())
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{name: name, after: it.Value()})
	}
	slices.SortFunc(entries, entry.compare)
	dst = append(dst, '{')
	for i, e := range entries {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(rawjson.AppendString(dst, e.name), ':')
		if dst, err = p.elem.append(dst, e.after, depth); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// keyName returns the member name for a map key.
func keyName(key reflect.Value) (string, error) {
	if key.Kind() == reflect.String {
		return key.String(), nil
	}
	if m, ok := key.Interface().(encoding.TextMarshaler); ok {
		if key.Kind() == reflect.Pointer && key.IsNil() {
			return "", nil
		}
		name, err := m.MarshalText()
		return string(name), err
	}
	switch {
	case key.CanInt():
		return strconv.FormatInt(key.Int(), 10), nil
	case key.CanUint():
		return strconv.FormatUint(key.Uint(), 10), nil
	}
	return "", fmt.Errorf("keys of type %s have no JSON form", key.Type())
}
