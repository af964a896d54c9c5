// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// decodeTree reads JSON as Kubernetes' unstructured objects hold it: integers that fit
// are int64, other numbers float64.
func decodeTree(dec *jsontext.Decoder) (any, error) {
	token, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case '{':
		object := map[string]any{}
		for dec.PeekKind() == '"' {
			name, err := dec.ReadToken()
			if err != nil {
				return nil, err
			}
			key := name.String()
			if object[key], err = decodeTree(dec); err != nil {
				return nil, err
			}
		}
		_, err := dec.ReadToken()
		return object, err
	case '[':
		list := []any{}
		for {
			kind := dec.PeekKind()
			if kind == ']' || kind == 0 {
				break
			}
			element, err := decodeTree(dec)
			if err != nil {
				return nil, err
			}
			list = append(list, element)
		}
		_, err := dec.ReadToken()
		return list, err
	case '"':
		return token.String(), nil
	case 't', 'f':
		return token.Bool(), nil
	case '0':
		return number(token.String())
	default:
		return nil, nil
	}
}

func number(text string) (any, error) {
	if !strings.ContainsAny(text, ".eE") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n, nil
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, errors.New("a number is out of range")
	}
	return f, nil
}
