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

	"github.com/sallyport-io/sallyport/jsonpatch"
)

// A layout says how JSON goes into the memory of a Go type, found out once for each
// type. It is the fast way for what API types are made of: structs, pointers, lists,
// maps by strings, strings, integers, booleans, and types that read themselves.
// Reading follows encoding/json with case-sensitive names. Whatever is not simple, an
// error among it, is left to the general decoder: reading then ends with false, and
// the general decoder says what is so.
//
// The offsets and types of a layout are reflect's own for the type of the memory it
// is used on, which is what makes the unsafe pointers below safe.
type layout struct {
	typ    reflect.Type
	kind   layoutKind
	elem   *layout       // of a pointer, list or map
	fields []layoutField // of a struct, in the order in which encoding/json writes them
	first  int           // how many elements of a list get room with the first
	size   uintptr       // of an element
	self   func(unsafe.Pointer) json.Unmarshaler
}

type layoutField struct {
	name   string
	offset uintptr
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
	layoutSelf  // reads itself
	layoutTime  // metav1.Time
	layoutTexts // map[string]string
)

// newLayout returns nil if the type itself is none that has a layout.
func newLayout(typ reflect.Type) *layout {
	l := layouts{}.of(typ)
	if l.kind != layoutStruct {
		return nil
	}
	return l
}

// layouts are those found so far: types may hold themselves.
type layouts map[reflect.Type]*layout

func (ls layouts) of(typ reflect.Type) *layout {
	if l, ok := ls[typ]; ok {
		return l
	}
	l := &layout{typ: typ}
	ls[typ] = l
	switch typ { // that most objects have, and that have a shorter way
	case reflect.TypeFor[metav1.Time]():
		l.kind = layoutTime
		return l
	case reflect.TypeFor[map[string]string]():
		l.kind = layoutTexts
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
		if fields, ok := ls.fields(typ, 0); ok {
			l.kind, l.fields = layoutStruct, fields
		}
	}
	return l
}

// fields returns the members of a struct with those of the structs it embeds. It is
// not ok if that takes more of encoding/json's rules than that each name is there
// once.
func (ls layouts) fields(typ reflect.Type, offset uintptr) (out []layoutField, ok bool) {
	for field := range typ.Fields() {
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
		out = append(out, layoutField{name, offset + field.Offset, ls.of(field.Type)})
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

// A reading is one object on its way into memory.
type reading struct {
	jsonpatch.Reader
	// text is the object too. The strings of what is read are parts of it, and take no
	// memory of their own.
	text    string
	options jsonv2.Options
	imprint *Imprint // of the object; nil if nobody wants it
	failed  bool
}

// read fills the memory at p, which must be a zero value of the layout's type, and takes
// an imprint unless that is nil. The strings that it makes are parts of raw, which must
// never change from now on.
func (l *layout) read(raw []byte, p unsafe.Pointer, options jsonv2.Options, m *Imprint) bool {
	r := reading{
		Reader: jsonpatch.NewReader(raw), text: unsafe.String(unsafe.SliceData(raw), len(raw)),
		options: options, imprint: m,
	}
	if r.Kind() != '{' {
		return false
	}
	r.imprint.block(p, l.typ.Size())
	r.value(l, p)
	if r.failed {
		return false
	}
	r.imprint.take()
	return true
}

func (r *reading) fail() {
	r.failed = true
	r.Stop()
}

// value reads the next value into the memory at p.
func (r *reading) value(l *layout, p unsafe.Pointer) {
	kind := r.Kind()
	if l.kind == layoutSelf {
		if l.self(p).UnmarshalJSON(r.Value()) != nil {
			r.fail()
		}
		r.outside(l, p)
		return
	}
	if kind == 'n' && l.kind != layoutOther { // leaves a zero value as it is
		r.Skip()
		return
	}
	switch l.kind {
	case layoutStruct:
		r.members(l, p)
	case layoutPointer:
		elem := reflect.New(l.elem.typ)
		*(*unsafe.Pointer)(p) = elem.UnsafePointer()
		r.imprint.block(elem.UnsafePointer(), l.elem.typ.Size())
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
		*(*string)(p) = r.string()
	case layoutInt:
		r.integer(l, p)
	case layoutTexts:
		r.texts((*map[string]string)(p))
	case layoutTime:
		if kind != '"' {
			r.fail()
			return
		}
		at, err := time.Parse(time.RFC3339, r.string())
		if err != nil {
			r.fail()
			return
		}
		(*metav1.Time)(p).Time = at.Local()
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
		r.Skip()
	default:
		if jsonv2.Unmarshal(r.Value(), reflect.NewAt(l.typ, p).Interface(), r.options) != nil {
			r.fail()
		}
		r.outside(l, p)
	}
}

func (r *reading) outside(l *layout, p unsafe.Pointer) {
	if r.imprint != nil {
		r.imprint.outside(reflect.NewAt(l.typ, p).Elem())
	}
}

// members reads an object into a struct. Members mostly come in the order of the
// fields, so each is looked for behind the one before it.
func (r *reading) members(l *layout, p unsafe.Pointer) {
	if r.Kind() != '{' {
		r.fail()
		return
	}
	next := 0
	r.Object(func(name []byte) {
		for range l.fields {
			if next >= len(l.fields) {
				next = 0
			}
			f := &l.fields[next]
			next++
			if f.name == string(name) {
				r.value(f.layout, unsafe.Add(p, f.offset))
				return
			}
		}
	})
}

func (r *reading) elements(l *layout, p unsafe.Pointer) {
	if r.Kind() != '[' {
		r.fail()
		return
	}
	list := reflect.NewAt(l.typ, p).Elem()
	r.Array(func(i int) {
		if i == list.Cap() {
			list.Grow(max(l.first, i))
		}
		list.SetLen(i + 1)
		r.value(l.elem, unsafe.Add(list.UnsafePointer(), uintptr(i)*l.size))
	})
	if list.IsNil() {
		list.Set(reflect.MakeSlice(l.typ, 0, 0))
	}
	r.imprint.block(list.UnsafePointer(), uintptr(list.Len())*l.size)
}

func (r *reading) entries(l *layout, p unsafe.Pointer) {
	if r.Kind() != '{' {
		r.fail()
		return
	}
	into := reflect.MakeMap(l.typ)
	reflect.NewAt(l.typ, p).Elem().Set(into)
	elem := reflect.New(l.elem.typ).Elem()
	r.Object(func(name []byte) {
		key := reflect.New(l.typ.Key()).Elem()
		key.SetString(string(name))
		elem.SetZero()
		r.value(l.elem, elem.Addr().UnsafePointer())
		into.SetMapIndex(key, elem)
		r.imprint.entry(into, key, elem)
	})
	r.imprint.mapping(into)
}

// texts is entries for the map that labels, annotations and much else are.
func (r *reading) texts(p *map[string]string) {
	if r.Kind() != '{' {
		r.fail()
		return
	}
	into := map[string]string{}
	*p = into
	r.Object(func(name []byte) {
		key, value := r.part(name), ""
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
		r.imprint.text(into, key, value)
	})
	r.imprint.texts(into)
}

// part returns a name as a string, which takes no memory if it is a part of the object
// as it stands there.
func (r *reading) part(name []byte) string {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(name))) - uintptr(unsafe.Pointer(unsafe.StringData(r.text)))
	if size := uintptr(len(r.text)); start < size && start+uintptr(len(name)) <= size {
		return r.text[start : start+uintptr(len(name))]
	}
	return string(name)
}

func (r *reading) integer(l *layout, p unsafe.Pointer) {
	if r.Kind() != '0' {
		r.fail()
		return
	}
	at := r.Offset()
	r.Skip()
	n, err := strconv.ParseInt(r.text[at:at+len(r.Since(at))], 10, l.typ.Bits())
	if err != nil {
		r.fail()
		return
	}
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

// string reads the next value, which is a string.
func (r *reading) string() string {
	at := r.Offset()
	content, _ := r.String()
	if len(content)+2 == len(r.Since(at)) { // it has no escapes, which are all longer than what they stand for
		return r.text[at+1 : at+1+len(content)]
	}
	return string(content)
}
