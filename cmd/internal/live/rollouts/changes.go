// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Changes says how a spec differs from the one before: by field, which elements were added, changed and removed.
// It names elements and has no values, which may be secret.
func Changes(before, after []byte) []string {
	var old, is map[string]json.RawMessage
	if json.Unmarshal(before, &old) != nil || json.Unmarshal(after, &is) != nil {
		return nil
	}
	fields := slices.Concat(slices.Collect(maps.Keys(old)), slices.Collect(maps.Keys(is)))
	slices.Sort(fields)
	var out []string
	for _, field := range slices.Compact(fields) {
		was, now := old[field], is[field]
		switch {
		case bytes.Equal(was, now):
		case was == nil:
			out = append(out, "+ "+field+names(elements(now)))
		case now == nil:
			out = append(out, "- "+field+names(elements(was)))
		default:
			out = append(out, "~ "+field+between(elements(was), elements(now)))
		}
	}
	return out
}

// between says which elements were added, changed and removed.
func between(was, now map[string]string) string {
	var parts []string
	add := func(what string, names []string) {
		if len(names) > 0 {
			slices.Sort(names)
			parts = append(parts, what+" "+strings.Join(names, ", "))
		}
	}
	var added, changed, removed []string
	for name, value := range now {
		if old, there := was[name]; !there {
			added = append(added, name)
		} else if old != value {
			changed = append(changed, name)
		}
	}
	for name := range was {
		if _, there := now[name]; !there {
			removed = append(removed, name)
		}
	}
	add("added", added)
	add("changed", changed)
	add("removed", removed)
	if len(parts) == 0 { // the order, or a value without names
		return " changed"
	}
	return ": " + strings.Join(parts, "; ")
}

func names(of map[string]string) string {
	if len(of) == 0 {
		return ""
	}
	return ": " + strings.Join(slices.Sorted(maps.Keys(of)), ", ")
}

// elements are the elements of a value by name: the members of an object, or those of a list that have a name.
// Of a list of strings, such as arguments, nothing is named.
func elements(value json.RawMessage) map[string]string {
	out := map[string]string{}
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &members) == nil {
		for name, raw := range members {
			out[name] = string(raw)
		}
		return out
	}
	var list []json.RawMessage
	if json.Unmarshal(value, &list) != nil {
		return out
	}
	for _, raw := range list {
		var named struct{ Name, MountPath, Key, IP string }
		if json.Unmarshal(raw, &named) != nil {
			return nil
		}
		name := cmp.Or(named.Name, named.Key, named.IP)
		if named.MountPath != "" {
			name += " at " + named.MountPath
		}
		for i := 2; out[name] != ""; i++ { // names need not be unique
			name = fmt.Sprintf("%s (%d)", strings.TrimSuffix(name, fmt.Sprintf(" (%d)", i-1)), i)
		}
		if name != "" {
			out[name] = string(raw)
		}
	}
	return out
}
