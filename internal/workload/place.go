// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/internal/rawjson"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// elementNames are the members that identify an element of a pod's list, in order of
// preference.
var elementNames = []string{"mountPath", "devicePath", "name", "ip", "containerPort", "topologyKey", "key"}

// Place describes a JSON pointer with names instead of indexes:
// "spec.containers[web].env[PROXY]". Elements without a name keep their index.
func Place(document jsontext.Value, pointer string) string {
	tokens, err := jsonpatch.SplitPointer(pointer)
	if err != nil {
		return pointer
	}
	var out strings.Builder
	for i, token := range tokens {
		value, there := rawjson.Lookup(document, tokens[:i+1]...)
		_, notNumber := strconv.Atoi(token)
		switch {
		case notNumber == nil && there && i > 0 && parentIsList(document, tokens[:i]):
			out.WriteString("[" + ElementName(value, token) + "]")
		case strings.ContainsAny(token, "./"):
			out.WriteString("[" + token + "]")
		case i == 0:
			out.WriteString(token)
		default:
			out.WriteString("." + token)
		}
	}
	return out.String()
}

func parentIsList(document jsontext.Value, tokens []string) bool {
	parent, there := rawjson.Lookup(document, tokens...)
	return there && parent.Kind() == '['
}

// ElementName returns the name of a list element, or its index if it has none.
func ElementName(element jsontext.Value, index string) string {
	if element.Kind() != '{' {
		return index
	}
	for _, name := range elementNames {
		value, there := rawjson.Lookup(element, name)
		if !there {
			continue
		}
		if value.Kind() == '"' {
			text, err := jsontext.AppendUnquote(nil, value)
			if err == nil && len(text) > 0 {
				return string(text)
			}
			continue
		}
		return string(value)
	}
	return index
}
