// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"encoding/json"
	"reflect"
	"unsafe"

	jsonv2 "github.com/go-json-experiment/json"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A comparison walks the record and the object together.
type comparison struct {
	record *Record
	position
	spares map[*layout]reflect.Value
	failed bool // a type does not read what it has read before
}

// A position counts what was looked at of a record.
type position struct{ numbers, strings, raws, quantities, ports int }

func (c *comparison) number() int64 {
	c.numbers++
	return c.record.numbers[c.numbers-1]
}

func (c *comparison) text() string {
	c.strings++
	return c.record.strings[c.strings-1]
}

func (c *comparison) raw() []byte {
	c.raws++
	return c.record.raws[c.raws-1]
}

// value reports whether the memory at p holds what was recorded next. If it does not, it
// gets that with restore, and without, the comparison ends. With restore, the memory is a
// copy of what the object has in its place: memory that it refers to is the object's, and
// stays as it is.
func (c *comparison) value(l *layout, p unsafe.Pointer, restore bool) (same bool) {
	switch l.kind {
	case layoutSelf, layoutOther:
		return c.self(l, p, restore)
	}
	n := c.number()
	if n == nothing {
		if same = l.isZero(p); !same && restore {
			l.at(p).SetZero()
		}
		return same
	}
	switch l.kind {
	case layoutStruct:
		return c.members(l, p, int(n), restore)
	case layoutPointer:
		return c.pointer(l, (*unsafe.Pointer)(p), restore)
	case layoutList:
		return c.elements(l, (*slice)(p), int(n), restore)
	case layoutMap:
		return c.entries(l, l.at(p), int(n), restore)
	case layoutTexts:
		return c.texts((*map[string]string)(p), int(n), restore)
	case layoutQuantities:
		return c.amounts(l, (*corev1.ResourceList)(p), int(n), restore)
	case layoutString:
		return is((*string)(p), c.text(), restore)
	case layoutInt:
		v := l.at(p)
		if same = n == v.Int(); !same && restore {
			v.SetInt(n)
		}
	case layoutBool:
		return is((*bool)(p), n == 't', restore)
	case layoutPort:
		c.ports++
		return is((*intstr.IntOrString)(p), c.record.ports[c.ports-1], restore)
	case layoutTime:
		at := (*metav1.Time)(p)
		if same = at.Unix() == n; !same && restore {
			*at = metav1.Unix(n, 0)
		}
	}
	return same
}

// is compares, and restores, values that refer to no memory but that of strings.
func is[T comparable](p *T, was T, restore bool) bool {
	same := *p == was
	if !same && restore {
		*p = was
	}
	return same
}

var (
	fieldsType   = reflect.TypeFor[metav1.FieldsV1]()
	quantityType = reflect.TypeFor[resource.Quantity]()
)

// self is value for a type that decodes itself.
func (c *comparison) self(l *layout, p unsafe.Pointer, restore bool) bool {
	raw := c.raw()
	switch {
	case l.typ == fieldsType: // every object has them, and they are long
		if now, err := (*metav1.FieldsV1)(p).MarshalJSON(); err == nil && bytes.Equal(raw, now) {
			return true
		}
	case l.typ == quantityType && l.kind == layoutSelf:
		c.quantities++
		if c.record.quantities[c.quantities-1] == *(*resource.Quantity)(p) {
			return true
		}
	}
	v, again := l.at(p), c.spare(l)
	if l.kind == layoutSelf {
		c.failed = c.failed || again.Interface().(json.Unmarshaler).UnmarshalJSON(raw) != nil
	} else {
		c.failed = c.failed || jsonv2.Unmarshal(raw, again.Interface(), c.record.typ.options) != nil
	}
	if same(again.Elem(), v) {
		return true
	}
	if restore {
		v.Set(again.Elem())
	}
	return false
}

// spare returns a pointer to a zero value of a type that decodes itself. One per type
// is reused, because quantities, for example, are frequent.
func (c *comparison) spare(l *layout) reflect.Value {
	if spare, ok := c.spares[l]; ok {
		spare.Elem().SetZero()
		return spare
	}
	if c.spares == nil {
		c.spares = make(map[*layout]reflect.Value, 4)
	}
	c.spares[l] = reflect.New(l.typ)
	return c.spares[l]
}

// members compares the fields read into a struct. All other fields must be zero.
func (c *comparison) members(l *layout, p unsafe.Pointer, n int, restore bool) bool {
	var few [2]uint64
	seen := few[:]
	if len(l.fields) > 64*len(few) {
		seen = make([]uint64, (len(l.fields)+63)/64)
	}
	same := true
	for range n {
		i := c.number()
		seen[i/64] |= 1 << (i % 64)
		if !c.value(l.fields[i].layout, unsafe.Add(p, l.fields[i].offset), restore) {
			if !restore {
				return false
			}
			same = false
		}
	}
	if l.zeroBut(seen, p) {
		return same
	}
	for i := range l.fields {
		if seen[i/64]&(1<<(i%64)) != 0 {
			continue
		}
		if field, at := l.fields[i].layout, unsafe.Add(p, l.fields[i].offset); !field.isZero(at) {
			if !restore {
				return false
			}
			field.at(at).SetZero()
			same = false
		}
	}
	return same
}

func (c *comparison) pointer(l *layout, p *unsafe.Pointer, restore bool) bool {
	start := c.position
	if *p != nil && c.value(l.elem, *p, false) {
		return true
	}
	if restore {
		c.position = start
		elem := reflect.New(l.elem.typ)
		if *p != nil {
			elem.Elem().Set(l.elem.at(*p))
		}
		*p = elem.UnsafePointer()
		c.value(l.elem, *p, true)
	}
	return false
}

// elements compares a list of n elements. One that has become longer shares its
// beginning with the list before.
func (c *comparison) elements(l *layout, list *slice, n int, restore bool) bool {
	start, same := c.position, 0
	for same < min(n, list.length) && c.value(l.elem, unsafe.Add(list.memory, uintptr(same)*l.size), false) {
		same++
	}
	switch {
	case same < n || list.memory == nil:
	case list.length == n:
		return true
	default:
		if restore {
			list.length = n
		}
		return false
	}
	if restore {
		c.position = start
		before, now := reflect.MakeSlice(l.typ, n, n), l.at(unsafe.Pointer(list))
		reflect.Copy(before, now)
		for i := range n {
			c.value(l.elem, unsafe.Add(before.UnsafePointer(), uintptr(i)*l.size), true)
		}
		now.Set(before)
	}
	return false
}

// A slice is the memory of a slice of any type, with which reflection takes longer.
type slice struct {
	memory           unsafe.Pointer
	length, capacity int
}

func (c *comparison) entries(l *layout, v reflect.Value, n int, restore bool) bool {
	start, key, elem := c.position, reflect.New(l.typ.Key()).Elem(), reflect.New(l.elem.typ)
	next := func() reflect.Value {
		c.number() // of the key
		key.SetString(c.text())
		return key
	}
	if !v.IsNil() && v.Len() == n {
		same := 0
		for same < n {
			now := v.MapIndex(next())
			if !now.IsValid() {
				break
			}
			elem.Elem().Set(now)
			if !c.value(l.elem, elem.UnsafePointer(), false) {
				break
			}
			same++
		}
		if same == n {
			return true
		}
	}
	if restore {
		c.position = start
		entries := reflect.MakeMapWithSize(l.typ, n)
		for range n {
			key := next()
			elem.Elem().SetZero()
			c.value(l.elem, elem.UnsafePointer(), true)
			entries.SetMapIndex(key, elem.Elem())
		}
		v.Set(entries)
	}
	return false
}

// texts is entries for map[string]string.
func (c *comparison) texts(p *map[string]string, n int, restore bool) bool {
	m := *p
	texts := c.record.strings[c.strings : c.strings+2*n] // keys and values
	c.strings += 2 * n
	same := m != nil && len(m) == n
	for i := 0; same && i < len(texts); i += 2 {
		text, ok := m[texts[i]]
		same = ok && text == texts[i+1]
	}
	if !same && restore {
		m = make(map[string]string, n)
		for i := 0; i < len(texts); i += 2 {
			m[texts[i]] = texts[i+1]
		}
		*p = m
	}
	return same
}

// amounts is entries for corev1.ResourceList.
func (c *comparison) amounts(l *layout, p *corev1.ResourceList, n int, restore bool) bool {
	m, start := *p, c.position
	var amount resource.Quantity
	same := m != nil && len(m) == n
	for i := 0; same && i < n; i++ {
		amount, same = m[corev1.ResourceName(c.text())]
		same = same && c.self(l.elem, unsafe.Pointer(&amount), false)
	}
	if !same && restore {
		c.position, m = start, make(corev1.ResourceList, n)
		for range n {
			key := c.text()
			amount = resource.Quantity{}
			c.self(l.elem, unsafe.Pointer(&amount), true)
			m[corev1.ResourceName(key)] = amount
		}
		*p = m
	}
	return same
}

// same compares two values of a type that decodes itself.
func same(a, b reflect.Value) bool {
	return identical(a, b) || b.CanInterface() && reflect.DeepEqual(a.Interface(), b.Interface())
}

// identical is a fast path for most values that [reflect.DeepEqual] finds equal.
func identical(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			if !identical(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.String:
		return a.String() == b.String()
	case reflect.Bool:
		return a.Bool() == b.Bool()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return a.Int() == b.Int()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return a.Uint() == b.Uint()
	case reflect.Slice:
		return a.IsNil() == b.IsNil() && a.Type().Elem().Kind() == reflect.Uint8 && bytes.Equal(a.Bytes(), b.Bytes())
	case reflect.Pointer, reflect.Map, reflect.Interface, reflect.Func, reflect.Chan:
		return a.IsNil() && b.IsNil()
	}
	return false
}
