// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
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
	layout *layout
}

type layoutKind uint8

const (
	layoutStruct layoutKind = iota
	layoutMap
	layoutTexts      // map[string]string
	layoutQuantities // corev1.ResourceList
	layoutList
	layoutString
	layoutTime // metav1.Time
	layoutPointer
	layoutInt
	layoutBool
	layoutPort  // intstr.IntOrString
	layoutOther // for the general decoder
	layoutSelf  // decodes itself
)

// starts is how values of the kind start in JSON; 0 if that differs.
func (k layoutKind) starts() jsontext.Kind {
	switch {
	case k <= layoutQuantities:
		return '{'
	case k == layoutList:
		return '['
	case k <= layoutTime:
		return '"'
	}
	return 0
}

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
	l := &layout{typ: typ, kind: layoutOther}
	ls[typ] = l
	switch typ { // common in objects, with a shorter path
	case reflect.TypeFor[metav1.Time]():
		l.kind = layoutTime
		return l
	case reflect.TypeFor[map[string]string]():
		l.kind = layoutTexts
		return l
	case reflect.TypeFor[corev1.ResourceList]():
		l.kind, l.elem = layoutQuantities, ls.of(quantityType)
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
			switch typ {
			case quantityType:
				l.self = func(p unsafe.Pointer) json.Unmarshaler { return (*resource.Quantity)(p) }
				return l
			case fieldsType:
				l.self = func(p unsafe.Pointer) json.Unmarshaler { return (*metav1.FieldsV1)(p) }
				return l
			}
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
			l.first = int(min(max(1024/max(l.size, 1), 1), 4))
		}
	case reflect.Map:
		if key := ls.of(typ.Key()); key.kind == layoutString {
			l.kind, l.elem = layoutMap, ls.of(typ.Elem())
		}
	case reflect.Struct:
		if fields, ok := ls.fields(typ, 0); ok {
			l.kind, l.fields = layoutStruct, fields
		}
	}
	return l
}

// fields returns the members of a struct, including those of embedded structs. It
// reports false unless every name is unique, because only then does it need none of
// encoding/json's precedence rules.
func (ls layouts) fields(typ reflect.Type, offset uintptr) (out []layoutField, ok bool) {
	for i := range typ.NumField() {
		field := typ.Field(i)
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
			embedded, ok := ls.fields(field.Type, offset+field.Offset)
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
		out = append(out, layoutField{name, offset + field.Offset, offset + field.Offset + field.Type.Size(), ls.of(field.Type)})
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

// field returns the index of the named field, or -1. The search starts at next.
func (l *layout) field(name []byte, next int) int {
	if len(name) == 0 { // no field has this name
		return -1
	}
	for i := next; i < len(l.fields); i++ {
		if l.fields[i].is(name) {
			return i
		}
	}
	for i := range min(next, len(l.fields)) {
		if l.fields[i].is(name) {
			return i
		}
	}
	return -1
}

// is compares the last character first, which spares most calls of a function.
func (f *layoutField) is(name []byte) bool {
	last := len(name) - 1
	return len(f.name) == len(name) && f.name[last] == name[last] && f.name == string(name)
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

// at returns the value at p.
func (l *layout) at(p unsafe.Pointer) reflect.Value { return reflect.NewAt(l.typ, p).Elem() }

// isZero reports whether the memory at p holds a zero value, which may be one that refers
// to memory, such as a string without characters.
func (l *layout) isZero(p unsafe.Pointer) bool {
	return zero(unsafe.Slice((*byte)(p), l.typ.Size())) || l.at(p).IsZero()
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
