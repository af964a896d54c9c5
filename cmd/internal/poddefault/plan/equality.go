// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/api/resource"
)

// PodDefaults are compared with the pod on decoded trees. That only happens where both
// have an element with the same key: when an injected pod comes again, or in a
// conflict.

// Subset returns the fields set in want that differ in have. Fields that only have
// sets, such as the API server's defaults, do not count. In a list of objects, each
// wanted element must match some element. Other lists must be equal.
func Subset(want, have jsontext.Value) []string {
	return Unmet(nil, "", Decode(want), Decode(have))
}

// exactly compares in both directions, as type T. Fields unknown to T do not count, and
// drop removes values from both trees that mean the same as their absence.
func exactly[T any](drop func(tree map[string]any)) func(want, have jsontext.Value) []string {
	known := fieldPaths(nil, "", reflect.TypeFor[T]())
	unknown := func(path string) bool { return !slices.Contains(known, path) }
	return func(want, have jsontext.Value) []string {
		w, h := Decode(want), Decode(have)
		for _, tree := range []any{w, h} {
			if object, ok := tree.(map[string]any); ok {
				drop(object)
			}
		}
		extra := slices.DeleteFunc(Unmet(nil, "", h, w), unknown)
		differences := append(Unmet(nil, "", w, h), extra...)
		slices.Sort(differences)
		return slices.Compact(differences)
	}
}

// fieldPaths lists the JSON fields of an API struct and of the structs below it, in the
// form of unmet's paths.
func fieldPaths(paths []string, path string, t reflect.Type) []string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[resource.Quantity]() {
		return paths
	}
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" { // inlined
			paths = fieldPaths(paths, path, field.Type)
			continue
		}
		below := name
		if path != "" {
			below = path + "." + name
		}
		paths = fieldPaths(append(paths, below), below, field.Type)
	}
	return paths
}

// dropEnvDefaults removes the API server's defaults (fieldRef.apiVersion v1, divisor
// 0), "optional: false" and empty values.
func dropEnvDefaults(env map[string]any) {
	dropEqual(env, "value", "")
	if from, ok := env["valueFrom"].(map[string]any); ok {
		dropOptionalFalse(from)
		if ref, ok := from["fieldRef"].(map[string]any); ok {
			dropEqual(ref, "apiVersion", "v1")
		}
		if ref, ok := from["resourceFieldRef"].(map[string]any); ok {
			dropEqual(ref, "divisor", "0")
		}
	}
}

// dropOptionalFalse removes "optional: false" from each source of env or envFrom.
func dropOptionalFalse(sources map[string]any) {
	for _, source := range sources {
		if source, ok := source.(map[string]any); ok {
			dropEqual(source, "optional", false)
		}
	}
}

func dropMountDefaults(mount map[string]any) {
	dropEqual(mount, "readOnly", false)
	dropEqual(mount, "subPath", "")
	dropEqual(mount, "subPathExpr", "")
	dropEqual(mount, "mountPropagation", "None")
	dropEqual(mount, "recursiveReadOnly", "Disabled")
}

func dropEqual(tree map[string]any, name string, value any) {
	if tree[name] == value {
		delete(tree, name)
	}
}

// volumeDifferences compares volumes: they need the same kind of source, and each
// wanted field of it. A volume without a source is an emptyDir.
func volumeDifferences(want, have jsontext.Value) []string {
	w, _ := Decode(want).(map[string]any)
	h, _ := Decode(have).(map[string]any)
	for _, volume := range []map[string]any{w, h} {
		if len(volume) == 1 {
			volume["emptyDir"] = map[string]any{}
		}
	}
	return Unmet(nil, "", w, h)
}

// Unmet appends the paths where have does not satisfy want.
func Unmet(paths []string, path string, want, have any) []string {
	switch want := want.(type) {
	case nil:
		return paths
	case map[string]any:
		have, ok := have.(map[string]any)
		if !ok {
			return append(paths, path)
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			below := name
			if path != "" {
				below = path + "." + name
			}
			if value, ok := have[name]; ok || want[name] == nil {
				paths = Unmet(paths, below, want[name], value)
			} else {
				paths = append(paths, below)
			}
		}
		return paths
	case []any:
		have, ok := have.([]any)
		if !ok {
			return append(paths, path)
		}
		return unmetElements(paths, path, want, have)
	default:
		if want != have {
			return append(paths, path)
		}
		return paths
	}
}

func unmetElements(paths []string, path string, want, have []any) []string {
	objects := !slices.ContainsFunc(want, func(e any) bool { _, ok := e.(map[string]any); return !ok })
	if !objects && len(want) != len(have) {
		return append(paths, path)
	}
	for i, element := range want {
		met := func(candidate any) bool { return len(Unmet(nil, "", element, candidate)) == 0 }
		if objects && !slices.ContainsFunc(have, met) || !objects && !met(have[i]) {
			paths = append(paths, path+"["+strconv.Itoa(i)+"]")
		}
	}
	return paths
}

// Decode returns the tree of a value, with numbers as written.
func Decode(value jsontext.Value) (tree any) {
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	if decoder.Decode(&tree) != nil {
		return nil
	}
	return tree
}
