// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"errors"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// Describe says where and why an object could not be decoded or encoded: a JSON
// pointer, an offset in bytes and the problem. Where is empty if unknown. Describe uses
// none of the error's own text, because decoders often repeat the value in it.
func Describe(err error) (where string, offset int64, problem string) {
	var semantic *json.SemanticError
	var legacy *jsonv1.UnmarshalTypeError
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &semantic):
		return orWhole(string(semantic.JSONPointer)), semantic.ByteOffset, expectation(semantic.GoType, semantic.JSONKind)
	case errors.As(err, &legacy):
		return "/" + strings.ReplaceAll(legacy.Field, ".", "/"), legacy.Offset, expectation(legacy.Type, 0)
	case errors.As(err, &syntax):
		return orWhole(string(syntax.JSONPointer)), syntax.ByteOffset, "no valid JSON"
	default:
		return "", 0, "a value does not fit its field"
	}
}

func orWhole(pointer string) string {
	if pointer == "" {
		return "the whole"
	}
	return pointer
}

func expectation(typ reflect.Type, found jsontext.Kind) string {
	expected := "another value"
	if typ != nil {
		for typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		switch kind := typ.Kind(); {
		case reflect.PointerTo(typ).Implements(reflect.TypeFor[json.Unmarshaler]()):
			expected = "a " + typ.Name()
		case kind == reflect.String:
			expected = "a string"
		case kind == reflect.Bool:
			expected = "true or false"
		case kind >= reflect.Int && kind <= reflect.Uintptr:
			expected = "an integer of type " + typ.Kind().String()
		case kind == reflect.Float32 || kind == reflect.Float64:
			expected = "a number"
		case kind == reflect.Slice && typ.Elem().Kind() == reflect.Uint8:
			expected = "a string in base64"
		case kind == reflect.Slice || kind == reflect.Array:
			expected = "a list"
		case kind == reflect.Struct || kind == reflect.Map:
			expected = "an object"
		}
	}
	switch found {
	case '{':
		return "expected " + expected + ", found an object"
	case '[':
		return "expected " + expected + ", found a list"
	case '"':
		return "expected " + expected + ", found a string"
	case '0':
		return "expected " + expected + ", found a number"
	case 't', 'f':
		return "expected " + expected + ", found a boolean"
	default:
		return "expected " + expected
	}
}
