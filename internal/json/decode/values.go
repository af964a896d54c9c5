// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"reflect"
	"strconv"
	"time"
	"unsafe"

	jsonv2 "github.com/go-json-experiment/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

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
