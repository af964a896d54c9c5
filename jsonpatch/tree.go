// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// tree compares two values of any types, usually the JSON types of unstructured
// objects.
func (d *differ) tree(before, after any) bool {
	if d.err != nil {
		return true
	}
	same := false
	switch b := before.(type) {
	case nil:
		same = after == nil
	case string:
		a, ok := after.(string)
		same = ok && a == b
	case bool:
		a, ok := after.(bool)
		same = ok && a == b
	case int64:
		a, ok := after.(int64)
		same = ok && a == b
	case map[string]any:
		if a, ok := after.(map[string]any); ok && a != nil && b != nil {
			return d.members(b, a)
		}
	}
	if same {
		return true
	}
	b, a := reflect.ValueOf(before), reflect.ValueOf(after)
	switch {
	case !b.IsValid() || !a.IsValid():
	case b.Type() == a.Type():
		return d.walk(planOf(b.Type()), b, a)
	default: // 1 equals an int64 and a float64
		x, err := appendTree(nil, before, 0)
		if err != nil {
			d.fail(err)
			return false
		}
		y, err := appendTree(nil, after, 0)
		if err != nil {
			d.fail(err)
			return false
		}
		if string(x) == string(y) {
			return true
		}
	}
	return d.setTree(after)
}

func (d *differ) setTree(after any) bool {
	if d.probing > 0 {
		return false
	}
	value, err := appendTree(nil, after, 0)
	if err != nil {
		d.fail(err)
		return false
	}
	d.here().replace(value)
	return false
}

func (d *differ) members(before, after map[string]any) bool {
	if reflect.ValueOf(before).Pointer() == reflect.ValueOf(after).Pointer() {
		return true
	}
	if d.probing > 0 {
		if len(before) != len(after) {
			return false
		}
		for name, b := range before {
			if a, ok := after[name]; !ok || !d.tree(b, a) {
				return false
			}
		}
		return true
	}
	start := len(d.names)
	for name := range before {
		d.names = append(d.names, name)
	}
	for name := range after {
		if _, ok := before[name]; !ok {
			d.names = append(d.names, name)
		}
	}
	end := len(d.names)
	slices.Sort(d.names[start:])
	same := true
	for i := start; i < end; i++ { // by index: deeper calls grow the scratch space
		name := d.names[i]
		b, had := before[name]
		a, has := after[name]
		d.enter(step{token: name, index: -1, whole: whole{value: reflect.ValueOf(a)}})
		switch {
		case !has:
			same = d.remove()
		case !had:
			same = d.setTree(a)
		default:
			same = d.tree(b, a) && same
		}
		d.leave()
	}
	d.names = d.names[:start]
	return same
}

// An entry is a map entry with its values before and after, if any.
type entry struct {
	name          string
	before, after reflect.Value
}

func (e entry) compare(other entry) int { return strings.Compare(e.name, other.name) }

// mapping compares maps of any type.
func (d *differ) mapping(p *plan, before, after reflect.Value) bool {
	if before.IsNil() || after.IsNil() {
		return before.IsNil() && after.IsNil() || d.replace(p, after)
	}
	if before.Pointer() == after.Pointer() {
		return true
	}
	if d.probing == 0 && p.typ.Key().Kind() != reflect.String {
		// As a whole: the document may have another form of a key.
		return d.probe(p, before, after) || d.replace(p, after)
	}
	switch p.typ {
	case treeType:
		return d.members(before.Interface().(map[string]any), after.Interface().(map[string]any))
	case stringsType:
		if maps.Equal(before.Interface().(map[string]string), after.Interface().(map[string]string)) {
			return true
		}
	default:
		if identicalMaps(before, after) {
			return true
		}
	}
	start := len(d.entries)
	for it := before.MapRange(); it.Next(); {
		key := it.Key()
		d.entry(key, it.Value(), after.MapIndex(key))
	}
	for it := after.MapRange(); it.Next(); {
		if key := it.Key(); !before.MapIndex(key).IsValid() {
			d.entry(key, reflect.Value{}, it.Value())
		}
	}
	end := len(d.entries)
	slices.SortFunc(d.entries[start:], entry.compare)
	same := true
	for i := start; i < end && (same || d.probing == 0); i++ {
		e := d.entries[i]
		d.enter(step{token: e.name, index: -1, whole: whole{p.elem, e.after}})
		switch {
		case !e.after.IsValid():
			same = d.remove()
		case !e.before.IsValid():
			same = d.replace(p.elem, e.after)
		default:
			same = d.walk(p.elem, e.before, e.after) && same
		}
		d.leave()
	}
	d.entries = d.entries[:start]
	return same
}

// identicalMaps is [identical] for maps.
func identicalMaps(before, after reflect.Value) bool {
	if before.Len() != after.Len() {
		return false
	}
	key := reflect.New(before.Type().Key()).Elem()
	value := reflect.New(before.Type().Elem()).Elem()
	for it := before.MapRange(); it.Next(); {
		key.SetIterKey(it)
		value.SetIterValue(it)
		if a := after.MapIndex(key); !a.IsValid() || !identical(value, a) {
			return false
		}
	}
	return true
}

var (
	treeType    = reflect.TypeFor[map[string]any]()
	stringsType = reflect.TypeFor[map[string]string]()
)

func (d *differ) entry(key, before, after reflect.Value) {
	name, err := keyName(key)
	if err != nil {
		d.fail(err)
	}
	d.entries = append(d.entries, entry{name, before, after})
}

// appendTree appends a value of any type.
func appendTree(dst []byte, v any, depth int) (_ []byte, err error) {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case string:
		return rawjson.AppendString(dst, v), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	case map[string]any:
		if v == nil {
			return append(dst, "null"...), nil
		}
		if depth > maxNesting {
			break // an error that planOf's plan makes
		}
		dst = append(dst, '{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(rawjson.AppendString(dst, name), ':')
			if dst, err = appendTree(dst, v[name], depth+1); err != nil {
				return nil, err
			}
		}
		return append(dst, '}'), nil
	}
	value := reflect.ValueOf(v)
	return planOf(value.Type()).append(dst, value, depth)
}
