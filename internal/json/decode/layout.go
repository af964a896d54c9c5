// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	jsonv2 "github.com/go-json-experiment/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// A layout says how JSON maps to the memory of a Go type. It is computed once per type.
// It is the fast path for what API types consist of: structs, pointers, lists, maps
// with string keys, strings, integers, booleans and types that decode themselves.
// Reading follows encoding/json with case-sensitive names. For anything else, including
// every error, reading returns false and the general decoder takes over.
//
// The offsets and types of a layout come from reflect and describe the type of the
// memory it is used on. That makes the unsafe pointers below safe.
type layout struct {
	typ    reflect.Type
	kind   layoutKind
	elem   *layout       // of a pointer, list or map
	fields []layoutField // of a struct, in the order in which encoding/json writes them
	first  int           // how many elements to allocate room for with the first
	size   uintptr       // of an element
	self   func(unsafe.Pointer) json.Unmarshaler
}

type layoutField struct {
	name   string
	offset uintptr
	end    uintptr
	index  []int // the path to the field through embedded structs
	layout *layout
}

type layoutKind uint8

const (
	layoutOther layoutKind = iota // for the general decoder
	layoutStruct
	layoutPointer
	layoutList
	layoutMap
	layoutString
	layoutInt
	layoutBool
	layoutSelf  // decodes itself
	layoutTime  // metav1.Time
	layoutPort  // intstr.IntOrString
	layoutTexts // map[string]string
)

// newLayout returns nil for a type without a layout.
func newLayout(typ reflect.Type) *layout {
	l := layouts{}.of(typ)
	if l.kind != layoutStruct {
		return nil
	}
	return l
}

// layouts holds the layouts found so far, because types may be recursive.
type layouts map[reflect.Type]*layout

func (ls layouts) of(typ reflect.Type) *layout {
	if l, ok := ls[typ]; ok {
		return l
	}
	l := &layout{typ: typ}
	ls[typ] = l
	switch typ { // common in objects, with a shorter path
	case reflect.TypeFor[metav1.Time]():
		l.kind = layoutTime
		return l
	case reflect.TypeFor[map[string]string]():
		l.kind = layoutTexts
		return l
	case reflect.TypeFor[intstr.IntOrString]():
		l.kind = layoutPort
		return l
	}
	switch pointer := reflect.PointerTo(typ); {
	case pointer.Implements(reflect.TypeFor[jsonv2.UnmarshalerFrom]()):
		return l
	case pointer.Implements(reflect.TypeFor[json.Unmarshaler]()):
		if typ.Kind() == reflect.Struct {
			l.kind = layoutSelf
			l.self = func(p unsafe.Pointer) json.Unmarshaler {
				return reflect.NewAt(typ, p).Interface().(json.Unmarshaler)
			}
		}
		return l
	case pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return l
	}
	switch typ.Kind() {
	case reflect.String:
		if typ != reflect.TypeFor[json.Number]() {
			l.kind = layoutString
		}
	case reflect.Bool:
		l.kind = layoutBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		l.kind = layoutInt
	case reflect.Pointer:
		l.kind, l.elem = layoutPointer, ls.of(typ.Elem())
	case reflect.Slice:
		if typ.Elem().Kind() != reflect.Uint8 {
			l.kind, l.elem, l.size = layoutList, ls.of(typ.Elem()), typ.Elem().Size()
			l.first = int(min(max(256/max(l.size, 1), 1), 8))
		}
	case reflect.Map:
		if key := ls.of(typ.Key()); key.kind == layoutString {
			l.kind, l.elem = layoutMap, ls.of(typ.Elem())
		}
	case reflect.Struct:
		if fields, ok := ls.fields(typ, 0, nil); ok {
			l.kind, l.fields = layoutStruct, fields
		}
	}
	return l
}

// fields returns the members of a struct, including those of embedded structs. It
// reports false unless every name is unique, because only then does it need none of
// encoding/json's precedence rules.
func (ls layouts) fields(typ reflect.Type, offset uintptr, index []int) (out []layoutField, ok bool) {
	for i := range typ.NumField() {
		field, at := typ.Field(i), append(slices.Clone(index), i)
		tag := field.Tag.Get("json")
		if tag == "-" || !field.IsExported() && !field.Anonymous {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if slices.Contains(strings.Split(options, ","), "string") {
			return nil, false
		}
		if field.Anonymous && name == "" {
			if field.Type.Kind() != reflect.Struct || !field.IsExported() {
				return nil, false
			}
			embedded, ok := ls.fields(field.Type, offset+field.Offset, at)
			if !ok {
				return nil, false
			}
			out = append(out, embedded...)
			continue
		}
		if name == "" {
			name = field.Name
		}
		for i := range len(name) {
			if c := name[i]; c >= 0x80 || !strings.ContainsRune("-_.", rune(c)) &&
				(c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
				return nil, false
			}
		}
		out = append(out, layoutField{name, offset + field.Offset, offset + field.Offset + field.Type.Size(), at, ls.of(field.Type)})
	}
	names := map[string]bool{}
	for _, f := range out {
		if names[f.name] {
			return nil, false
		}
		names[f.name] = true
	}
	return out, true
}

// A reading decodes one object into memory that shares nothing with the input.
type reading struct {
	rawjson.Reader
	strings stringRoom
	options jsonv2.Options
	record  *Record // of what is read; may be nil
	failed  bool
}

// read fills the memory at p, which must be a zero value of the layout's type. It fills
// record unless that is nil.
func (l *layout) read(raw []byte, p unsafe.Pointer, options jsonv2.Options, record *Record) bool {
	r := reading{Reader: rawjson.NewReader(raw), options: options, record: record}
	if r.Kind() != '{' {
		return false
	}
	r.value(l, p)
	return !r.failed
}

func (r *reading) fail() {
	r.failed = true
	r.Stop()
}

// value reads the next value into the memory at p.
func (r *reading) value(l *layout, p unsafe.Pointer) {
	kind := r.Kind()
	if l.kind == layoutSelf {
		raw, value := r.Value(), l.self(p)
		if value.UnmarshalJSON(raw) != nil {
			r.fail()
		}
		r.record.self(raw, value)
		return
	}
	if kind == 'n' && l.kind != layoutOther { // leaves the zero value
		r.record.null()
		r.Skip()
		return
	}
	switch l.kind {
	case layoutStruct:
		r.members(l, p)
	case layoutPointer:
		elem := reflect.New(l.elem.typ)
		*(*unsafe.Pointer)(p) = elem.UnsafePointer()
		r.record.number(1)
		r.value(l.elem, elem.UnsafePointer())
	case layoutList:
		r.elements(l, p)
	case layoutMap:
		r.entries(l, p)
	case layoutString:
		if kind != '"' {
			r.fail()
			return
		}
		text := r.string()
		*(*string)(p) = text
		r.record.text(text)
	case layoutInt:
		r.integer(l, p)
	case layoutTexts:
		r.texts((*map[string]string)(p))
	case layoutTime:
		if kind != '"' {
			r.fail()
			return
		}
		content, _ := r.String()
		at, err := time.Parse(time.RFC3339, string(content))
		if err != nil {
			r.fail()
			return
		}
		r.record.number(at.Unix())
		(*metav1.Time)(p).Time = at.Local()
	case layoutPort:
		r.port(reflect.NewAt(l.typ, p).Interface().(*intstr.IntOrString))
	case layoutBool:
		switch kind {
		case 't':
			*(*bool)(p) = true
		case 'f':
			*(*bool)(p) = false
		default:
			r.fail()
			return
		}
		r.record.number(int64(kind))
		r.Skip()
	default:
		raw := r.Value()
		r.record.raw(raw)
		if jsonv2.Unmarshal(raw, reflect.NewAt(l.typ, p).Interface(), r.options) != nil {
			r.fail()
		}
	}
}

// members reads an object into a struct. Members usually come in field order, so each
// search starts after the previous field.
func (r *reading) members(l *layout, p unsafe.Pointer) {
	if r.Kind() != '{' {
		r.fail()
		return
	}
	next := 0
	head := r.record.head()
	r.Object(func(name []byte) {
		if i := l.field(name, next); i >= 0 {
			next = i + 1
			r.record.count(head)
			r.record.number(int64(i))
			r.value(l.fields[i].layout, unsafe.Add(p, l.fields[i].offset))
		}
	})
}

// field returns the index of the named field, or -1. The search starts at next.
func (l *layout) field(name []byte, next int) int {
	for i := next; i < len(l.fields); i++ {
		if l.fields[i].name == string(name) {
			return i
		}
	}
	for i := range min(next, len(l.fields)) {
		if l.fields[i].name == string(name) {
			return i
		}
	}
	return -1
}

// zeroBut reports whether every bit of a struct outside the fields in set is zero.
func (l *layout) zeroBut(set []uint64, p unsafe.Pointer) bool {
	memory := unsafe.Slice((*byte)(p), l.typ.Size())
	from := uintptr(0)
	for i := range l.fields { // in memory order
		if set[i/64]&(1<<(i%64)) != 0 {
			if !zero(memory[from:l.fields[i].offset]) {
				return false
			}
			from = l.fields[i].end
		}
	}
	return zero(memory[from:])
}

var zeros [512]byte

func zero(memory []byte) bool {
	for len(memory) > len(zeros) {
		if string(memory[:len(zeros)]) != string(zeros[:]) {
			return false
		}
		memory = memory[len(zeros):]
	}
	return string(memory) == string(zeros[:len(memory)])
}

// of returns the field of struct v.
func (f *layoutField) of(v reflect.Value) reflect.Value {
	for _, i := range f.index {
		v = v.Field(i)
	}
	return v
}

func (r *reading) elements(l *layout, p unsafe.Pointer) {
	if r.Kind() != '[' {
		r.fail()
		return
	}
	list := reflect.NewAt(l.typ, p).Elem()
	head := r.record.head()
	r.Array(func(i int) {
		r.record.count(head)
		if i == list.Cap() {
			list.Grow(max(l.first, i))
		}
		list.SetLen(i + 1)
		r.value(l.elem, unsafe.Add(list.UnsafePointer(), uintptr(i)*l.size))
	})
	if list.IsNil() {
		list.Set(reflect.MakeSlice(l.typ, 0, 0))
	}
}

func (r *reading) entries(l *layout, p unsafe.Pointer) {
	if r.Kind() != '{' {
		r.fail()
		return
	}
	into := reflect.MakeMap(l.typ)
	reflect.NewAt(l.typ, p).Elem().Set(into)
	key, elem := reflect.New(l.typ.Key()).Elem(), reflect.New(l.elem.typ).Elem() // the map copies both
	head := r.record.head()
	r.Object(func(name []byte) {
		text := r.strings.copy(name)
		r.record.count(head)
		r.record.text(text)
		key.SetString(text)
		elem.SetZero()
		r.value(l.elem, elem.Addr().UnsafePointer())
		into.SetMapIndex(key, elem)
	})
}

// texts is entries for map[string]string, the type of labels, annotations and much
// else.
func (r *reading) texts(p *map[string]string) {
	if r.Kind() != '{' {
		r.fail()
		return
	}
	into := map[string]string{}
	*p = into
	head := r.record.head()
	r.Object(func(name []byte) {
		key, value := r.strings.copy(name), ""
		switch r.Kind() {
		case '"':
			value = r.string()
		case 'n':
			r.Skip()
		default:
			r.fail()
			return
		}
		into[key] = value
		r.record.count(head)
		r.record.texts(key, value)
	})
}

func (r *reading) integer(l *layout, p unsafe.Pointer) {
	n := r.number(l.typ.Bits())
	r.record.number(n)
	switch l.typ.Bits() {
	case 8:
		*(*int8)(p) = int8(n)
	case 16:
		*(*int16)(p) = int16(n)
	case 32:
		*(*int32)(p) = int32(n)
	default:
		*(*int64)(p) = n
	}
}

// number reads the next value, an integer of that many bits.
func (r *reading) number(bits int) int64 {
	if r.Kind() != '0' {
		r.fail()
		return 0
	}
	n, err := strconv.ParseInt(string(r.Value()), 10, bits)
	if err != nil || n == nothing {
		r.fail()
	}
	return n
}

func (r *reading) port(p *intstr.IntOrString) {
	if r.Kind() == '"' {
		*p = intstr.FromString(r.string())
	} else {
		*p = intstr.FromInt32(int32(r.number(32)))
	}
	r.record.port(*p)
}

// string reads the next value, a string.
func (r *reading) string() string {
	content, _ := r.String()
	return r.strings.copy(content)
}

// A stringRoom makes strings from bytes. Short strings share a block of memory, which
// costs a fraction of an allocation each. A retained string keeps its block alive, and
// no more.
type stringRoom struct{ block strings.Builder }

const (
	stringBlock = 512 // bytes
	maxShared   = stringBlock / 4
)

func (s *stringRoom) copy(content []byte) string {
	if len(content) > maxShared {
		return string(content)
	}
	if len(content) > s.block.Cap()-s.block.Len() {
		s.block = strings.Builder{}
		s.block.Grow(stringBlock)
	}
	start := s.block.Len()
	s.block.Write(content)
	return s.block.String()[start:]
}
