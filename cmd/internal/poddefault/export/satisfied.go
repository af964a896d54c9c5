// SPDX-License-Identifier: Apache-2.0

package export

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Existing elements are compared as in the webhook: by the wanted fields, or by all
// fields of a type.

// satisfiesSubset requires e to have each wanted field. Fields that only e has, such as
// the API server's defaults, do not count.
func satisfiesSubset(wanted any) string { return subsetOf("e", wanted, 1) }

// satisfiesVolume is [satisfiesSubset] for volumes, where a volume without a source is
// an emptyDir.
func satisfiesVolume(wanted any) string {
	if volume := wanted.(map[string]any); len(volume) == 1 {
		wanted = map[string]any{"name": volume["name"], "emptyDir": map[string]any{}}
	}
	return satisfiesSubset(wanted)
}

// subsetOf compares the value at a path: an object, or an optional one. Depth makes
// variable names unique.
func subsetOf(path string, wanted any, depth int) string {
	switch wanted := wanted.(type) {
	case nil:
		return "true"
	case map[string]any:
		var terms []string
		for _, name := range slices.Sorted(maps.Keys(wanted)) {
			terms = append(terms, subsetOf(path+selected(name), wanted[name], depth))
		}
		if len(terms) == 0 {
			return path + ".hasValue()"
		}
		return strings.Join(terms, " && ")
	case []any:
		if slices.ContainsFunc(wanted, func(e any) bool { _, ok := e.(map[string]any); return !ok }) {
			return path + ".orValue([]) == " + literalOf(wanted)
		}
		terms := []string{path + ".hasValue()"}
		for _, e := range wanted {
			if len(e.(map[string]any)) == 0 {
				terms = append(terms, "size("+path+".orValue([])) > 0")
				continue
			}
			variable := "e" + strconv.Itoa(depth)
			terms = append(terms, path+".orValue([]).exists("+variable+", "+subsetOf(variable, e, depth+1)+")")
		}
		return strings.Join(terms, " && ")
	default:
		return path + " == optional.of(" + literalOf(wanted) + ")"
	}
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func selected(name string) string {
	if identifier.MatchString(name) && !slices.Contains([]string{"in", "true", "false", "null"}, name) {
		return ".?" + name
	}
	return "[?" + quote(name) + "]"
}

// Defaults that mean the same as an absent field, by path.
var (
	envDefaults = map[string]any{
		".?valueFrom.?fieldRef.?apiVersion":      "v1",
		".?valueFrom.?resourceFieldRef.?divisor": "0",
	}
	mountDefaults = map[string]any{".?mountPropagation": "None", ".?recursiveReadOnly": "Disabled"}
)

// satisfiesExactly requires each field of the type to be equal on both sides. An empty
// string and false equal an absent field.
func satisfiesExactly[T any](defaults map[string]any) func(wanted any) string {
	return func(wanted any) string {
		return strings.Join(exactlyOf(nil, "", wanted, reflect.TypeFor[T](), defaults), " && ")
	}
}

func exactlyOf(terms []string, path string, wanted any, t reflect.Type, defaults map[string]any) []string {
	object, _ := wanted.(map[string]any)
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" { // inlined
			terms = exactlyOf(terms, path, wanted, field.Type, defaults)
			continue
		}
		below, fieldType := path+".?"+name, field.Type
		if fieldType.Kind() == reflect.Pointer {
			fieldType = fieldType.Elem()
		}
		value, there := object[name]
		switch {
		case fieldType == reflect.TypeFor[resource.Quantity](), fieldType.Kind() == reflect.String:
			allowed := []any{value}
			if none := defaults[below]; !there || value == "" || value == none {
				allowed = []any{""}
				if none != nil {
					allowed = append(allowed, none)
				}
			}
			terms = append(terms, "e"+below+".orValue(\"\") in "+literalOf(allowed))
		case fieldType.Kind() == reflect.Bool:
			terms = append(terms, "e"+below+".orValue(false) == "+literalOf(value == true))
		case !there:
			terms = append(terms, "!e"+below+".hasValue()")
		default:
			terms = append(terms, "e"+below+".hasValue()")
			terms = exactlyOf(terms, below, value, fieldType, defaults)
		}
	}
	return terms
}
