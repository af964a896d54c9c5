// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
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

// Relocate finds a part of a document in another document about the same object: the elements of
// lists by their names, see [ElementName], and those without a name by their value. It reports
// false if the other document has no such part.
func Relocate(document jsontext.Value, pointer string, other jsontext.Value) (string, bool) {
	tokens, err := jsonpatch.SplitPointer(pointer)
	if err != nil {
		return "", false
	}
	found := make([]string, len(tokens))
	for i, token := range tokens {
		found[i] = token
		if !parentIsList(document, tokens[:i]) {
			continue
		}
		value, _ := rawjson.Lookup(document, tokens[:i+1]...)
		list, _ := rawjson.Lookup(other, found[:i]...)
		if found[i] = indexOf(list, value); found[i] == "" {
			return "", false
		}
	}
	if _, there := rawjson.Lookup(other, found...); !there {
		return "", false
	}
	return jsonpatch.Pointer(found...), true
}

// indexOf returns the index of an element in a list, or "".
func indexOf(list, element jsontext.Value) (index string) {
	if list.Kind() != '[' {
		return ""
	}
	name := ElementName(element, "")
	r := rawjson.NewReader(list)
	r.Array(func(i int) {
		value := r.Value()
		if name != "" && name == ElementName(value, "") || bytes.Equal(value, element) {
			index = strconv.Itoa(i)
			r.Stop()
		}
	})
	return index
}
