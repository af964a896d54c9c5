// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"encoding/json"
	"reflect"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Record holds the values read into an object, in JSON order, and later tells whether
// a handler changed the object. Most calls of most mutating webhooks change nothing.
// Scanning a record takes a fraction of the time of decoding a second object and
// comparing the two.
//
// A record compares contents, never addresses, so it works whatever happens to the
// object's memory. It may report a change where the object still means the same, but
// never misses one: it looks at every field that appears in the JSON.
type Record struct {
	typ     *Type   // nil if the object has no record
	numbers []int64 // integers and lengths; nothing stands for null
	strings []string
	raws    [][]byte // of values that decode themselves: parts of the object's JSON
}

// nothing stands for null. No length or field uses this number. An integer that does
// counts as changed.
const nothing = -1 << 63

var records = sync.Pool{New: func() any { return new(Record) }}

// NewRecord returns an empty record. Call [Record.Release] when done.
func NewRecord() *Record { return records.Get().(*Record) }

// Release returns the record to the pool. Do not use it afterwards.
func (m *Record) Release() {
	if cap(m.numbers) > 1<<16 {
		return
	}
	clear(m.strings)
	clear(m.raws)
	*m = Record{numbers: m.numbers[:0], strings: m.strings[:0], raws: m.raws[:0]}
	records.Put(m)
}

// of completes the record. On a nil record, this and the methods below do nothing.
func (m *Record) of(t *Type) {
	if m != nil {
		m.typ = t
	}
}

// null, number, text and raw record a value.
func (m *Record) null() { m.number(nothing) }

func (m *Record) number(n int64) {
	if m != nil {
		m.numbers = append(m.numbers, n)
	}
}

func (m *Record) text(s string) {
	if m != nil {
		m.numbers = append(m.numbers, 0)
		m.strings = append(m.strings, s)
	}
}

func (m *Record) raw(value []byte) {
	if m != nil {
		m.raws = append(m.raws, value)
	}
}

// texts records an entry of a map of strings.
func (m *Record) texts(key, value string) {
	if m != nil {
		m.strings = append(m.strings, key, value)
	}
}

// head begins a value made of other values. The caller sets their count with count.
func (m *Record) head() int {
	m.number(0)
	if m == nil {
		return 0
	}
	return len(m.numbers) - 1
}

func (m *Record) count(head int) {
	if m != nil {
		m.numbers[head]++
	}
}

// Unchanged reports whether value, the recorded object, still holds what was read.
func (m *Record) Unchanged(value any) bool {
	if m.typ == nil {
		return false
	}
	c := comparison{record: m}
	return c.value(m.typ.layout, reflect.ValueOf(value).Elem())
}

// A comparison walks the record and the object together until the first difference.
type comparison struct {
	record                 *Record
	numbers, strings, raws int // how many of each were looked at
	spares                 map[*layout]reflect.Value
}

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

func (c *comparison) value(l *layout, v reflect.Value) bool {
	switch l.kind {
	case layoutSelf:
		raw := c.raw()
		if l.typ == fieldsType && v.CanAddr() { // every object has them, and they are long
			return bytes.Equal(raw, v.Addr().Interface().(*metav1.FieldsV1).GetRawBytes())
		}
		again := c.spare(l)
		return again.Interface().(json.Unmarshaler).UnmarshalJSON(raw) == nil && same(again.Elem(), v)
	case layoutOther:
		again := c.spare(l)
		return jsonv2.Unmarshal(c.raw(), again.Interface(), c.record.typ.options) == nil && same(again.Elem(), v)
	}
	n := c.number()
	if n == nothing {
		return v.IsZero()
	}
	switch l.kind {
	case layoutStruct:
		return c.members(l, v, int(n))
	case layoutPointer:
		return !v.IsNil() && c.value(l.elem, v.Elem())
	case layoutList:
		return !v.IsNil() && v.Len() == int(n) && c.elements(l, v)
	case layoutMap:
		return !v.IsNil() && v.Len() == int(n) && c.entries(l, v)
	case layoutTexts:
		return !v.IsNil() && v.Len() == int(n) && c.texts(v.Interface().(map[string]string))
	case layoutString:
		return c.text() == v.String()
	case layoutInt:
		return n == v.Int()
	case layoutBool:
		return v.Bool() == (n == 't')
	case layoutTime:
		return v.Interface().(metav1.Time).Unix() == n
	}
	return false
}

var fieldsType = reflect.TypeFor[metav1.FieldsV1]()

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
func (c *comparison) members(l *layout, v reflect.Value, n int) bool {
	var few [2]uint64
	seen := few[:]
	if len(l.fields) > 64*len(few) {
		seen = make([]uint64, (len(l.fields)+63)/64)
	}
	for range n {
		i := c.number()
		if seen[i/64] |= 1 << (i % 64); !c.value(l.fields[i].layout, l.fields[i].of(v)) {
			return false
		}
	}
	if v.CanAddr() {
		return l.zeroBut(seen, v.Addr().UnsafePointer())
	}
	for i := range l.fields { // of an entry of a map
		if seen[i/64]&(1<<(i%64)) == 0 && !l.fields[i].of(v).IsZero() {
			return false
		}
	}
	return true
}

func (c *comparison) elements(l *layout, v reflect.Value) bool {
	for i := range v.Len() {
		if !c.value(l.elem, v.Index(i)) {
			return false
		}
	}
	return true
}

func (c *comparison) entries(l *layout, v reflect.Value) bool {
	key := reflect.New(l.typ.Key()).Elem()
	for range v.Len() {
		c.number() // of the key
		key.SetString(c.text())
		if elem := v.MapIndex(key); !elem.IsValid() || !c.value(l.elem, elem) {
			return false
		}
	}
	return true
}

func (c *comparison) texts(m map[string]string) bool {
	for range len(m) {
		key, value := c.text(), c.text()
		if is, ok := m[key]; !ok || is != value {
			return false
		}
	}
	return true
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
