// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"reflect"
	"strconv"
	"time"
	"unsafe"

	jsonv2 "github.com/go-json-experiment/json"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// A reading decodes one object into memory that shares nothing with the input.
type reading struct {
	rawjson.Steps
	strings stringRoom
	options jsonv2.Options
	record  *Record // of what is read; may be nil
	failed  bool
}

// read fills the memory at p, which must be a zero value of the layout's type. It fills
// record unless that is nil.
func (l *layout) read(raw []byte, p unsafe.Pointer, options jsonv2.Options, record *Record) bool {
	r := reading{Steps: rawjson.NewSteps(raw), options: options, record: record}
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
	if kind == 'n' && l.kind < layoutOther { // leaves the zero value
		r.record.null()
		r.Skip()
		return
	}
	if want := l.kind.starts(); want != 0 && kind != want {
		r.fail()
		return
	}
	switch l.kind {
	case layoutString:
		text := r.strings.copy(r.Text())
		*(*string)(p) = text
		r.record.text(text)
	case layoutStruct:
		r.members(l, p)
	case layoutPointer:
		elem := reflect.New(l.elem.typ).UnsafePointer()
		*(*unsafe.Pointer)(p) = elem
		r.record.number(1)
		r.value(l.elem, elem)
	case layoutList:
		r.elements(l, p)
	case layoutMap:
		r.entries(l, p)
	case layoutInt:
		r.integer(l, p)
	case layoutTexts:
		r.texts((*map[string]string)(p))
	case layoutQuantities:
		r.quantities((*corev1.ResourceList)(p))
	case layoutTime:
		at, err := time.Parse(time.RFC3339, string(r.Text()))
		if err != nil {
			r.fail()
			return
		}
		r.record.number(at.Unix())
		(*metav1.Time)(p).Time = at.Local()
	case layoutPort:
		r.port((*intstr.IntOrString)(p))
	case layoutBool:
		if kind != 't' && kind != 'f' {
			r.fail()
			return
		}
		*(*bool)(p) = kind == 't'
		r.record.number(int64(kind))
		r.Skip()
	case layoutSelf:
		raw, value := r.Value(), l.self(p)
		if value.UnmarshalJSON(raw) != nil {
			r.fail()
		}
		r.record.self(raw, value)
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
	next, head := 0, r.record.head()
	for name, ok := r.Name(); ok; name, ok = r.Name() {
		i := l.field(name, next)
		if i < 0 {
			r.Skip()
			continue
		}
		next = i + 1
		r.record.count(head)
		r.record.number(int64(i))
		r.value(l.fields[i].layout, unsafe.Add(p, l.fields[i].offset))
	}
}

func (r *reading) elements(l *layout, p unsafe.Pointer) {
	list, head := reflect.NewAt(l.typ, p).Elem(), r.record.head()
	n, room := 0, 0
	for ; r.Element(); n++ {
		r.record.count(head)
		if n == room {
			list.SetLen(n)
			list.Grow(max(l.first, n))
			room = list.Cap()
			list.SetLen(room)
		}
		r.value(l.elem, unsafe.Add(list.UnsafePointer(), uintptr(n)*l.size))
	}
	if n == 0 {
		list.Set(reflect.MakeSlice(l.typ, 0, 0))
	} else {
		list.SetLen(n)
	}
}

func (r *reading) entries(l *layout, p unsafe.Pointer) {
	into, head := reflect.MakeMap(l.typ), r.record.head()
	reflect.NewAt(l.typ, p).Elem().Set(into)
	key, elem := reflect.New(l.typ.Key()).Elem(), reflect.New(l.elem.typ).Elem() // the map copies both
	for name, ok := r.Name(); ok; name, ok = r.Name() {
		text := r.strings.copy(name)
		r.record.count(head)
		r.record.text(text)
		key.SetString(text)
		elem.SetZero()
		r.value(l.elem, elem.Addr().UnsafePointer())
		into.SetMapIndex(key, elem)
	}
}

// texts is entries for map[string]string, the type of labels, annotations and much
// else.
func (r *reading) texts(p *map[string]string) {
	into, head := map[string]string{}, r.record.head()
	*p = into
	for name, ok := r.Name(); ok; name, ok = r.Name() {
		key, value := r.strings.copy(name), ""
		switch r.Kind() {
		case '"':
			value = r.strings.copy(r.Text())
		case 'n':
			r.Skip()
		default:
			r.fail()
			return
		}
		into[key] = value
		r.record.count(head)
		r.record.texts(key, value)
	}
}

// quantities is entries for the type of requests and limits.
func (r *reading) quantities(p *corev1.ResourceList) {
	into, head := corev1.ResourceList{}, r.record.head()
	*p = into
	for name, ok := r.Name(); ok; name, ok = r.Name() {
		var amount resource.Quantity
		key, raw := r.strings.copy(name), r.Value()
		if amount.UnmarshalJSON(raw) != nil {
			r.fail()
			return
		}
		into[corev1.ResourceName(key)] = amount
		r.record.count(head)
		r.record.quantity(key, raw, amount)
	}
}

func (r *reading) integer(l *layout, p unsafe.Pointer) {
	bits := l.typ.Bits()
	n := r.number(bits)
	r.record.number(n)
	switch bits {
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
		*p = intstr.FromString(r.strings.copy(r.Text()))
	} else {
		*p = intstr.FromInt32(int32(r.number(32)))
	}
	r.record.port(*p)
}
