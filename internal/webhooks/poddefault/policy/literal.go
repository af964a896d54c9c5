// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// quote is a string in CEL, whose escapes are those of Go.
func quote(s string) string { return strconv.Quote(s) }

// tree is the JSON of a value, decoded, with numbers as they are written. It leaves out
// the empty structs that encoding/json cannot omit, as the webhook does.
func tree(value any) any {
	encoded, err := json.Marshal(value)
	if err != nil { // what was decoded from JSON can be encoded
		return nil
	}
	for _, empty := range []string{`,"resources":{}`, `,"divisor":"0"`} {
		encoded = bytes.ReplaceAll(encoded, []byte(empty), nil)
	}
	var out any
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	if decoder.Decode(&out) != nil {
		return nil
	}
	return out
}

// literal writes a value of the API in CEL, by its JSON.
func literal(value any) string { return literalOf(tree(value)) }

func literalOf(value any) string {
	switch value := value.(type) {
	case map[string]any:
		members := make([]string, 0, len(value))
		same := uniform(slices.Collect(maps.Values(value)))
		for _, name := range slices.Sorted(maps.Keys(value)) {
			members = append(members, quote(name)+": "+member(value[name], same))
		}
		return "{" + strings.Join(members, ", ") + "}"
	case []any:
		elements := make([]string, len(value))
		for i := range value {
			elements[i] = member(value[i], uniform(value))
		}
		return "[" + strings.Join(elements, ", ") + "]"
	case string:
		return quote(value)
	case nil:
		return "null"
	default: // a number or truth value
		return fmt.Sprint(value)
	}
}

// uniform tells whether all elements are strings. The elements of a map or list must
// have one type in Kubernetes' CEL; of others it is said that they have any.
func uniform(elements []any) bool {
	return !slices.ContainsFunc(elements, func(e any) bool { _, ok := e.(string); return !ok })
}

func member(value any, uniform bool) string {
	if uniform {
		return literalOf(value)
	}
	return "dyn(" + literalOf(value) + ")"
}

// flatten joins lists. A chain of additions would nest too deeply for the parser.
func flatten(lists []string) string {
	if len(lists) == 0 {
		return "[]"
	}
	return "[\n  " + strings.Join(lists, ",\n  ") + "\n].flatten()"
}
