// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// quote returns a CEL string, whose escapes are those of Go.
func quote(s string) string { return strconv.Quote(s) }

// literal writes an API value in CEL, based on its JSON.
func literal(value any) string { return literalOf(plan.Decode(plan.Encode(value))) }

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
	default: // a number or boolean
		return fmt.Sprint(value)
	}
}

// uniform reports whether all elements are strings. In Kubernetes' CEL, the elements of
// a map or list must have one type; other elements are typed as dyn.
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
