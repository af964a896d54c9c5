// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"cmp"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode"

	jsonv2 "github.com/go-json-experiment/json"
)

// A plan tells how encoding/json encodes the values of a type, so that two values can
// be compared without encoding them.
type plan struct {
	kind   planKind
	typ    reflect.Type
	elem   *plan   // of a pointer, list, map or quoted value
	reads  bool    // values decode themselves, and so may accept other forms than the encoded one
	fields []field // of a struct, in the order in which they are written
}

type planKind uint8

const (
	unsupported planKind = iota // channels, functions and complex numbers
	boolean
	signed
	unsigned
	float
	text
	binary  // []byte, written in base64
	leaf    // encodes itself: a json.Marshaler or encoding.TextMarshaler, or json.Number
	quoted  // a scalar whose field has the option "string"
	pointer // to elem
	object  // a struct
	array   // an array of elem
	list    // a slice of elem
	mapping // a map to elem
	dynamic // an interface
)

// A field is a member of a struct's object.
type field struct {
	name  string
	index []int // more than one for a field of an embedded struct
	// The field's location in the memory of the struct; 0 and 0 if it is behind a
	// pointer.
	start, end uintptr
	plan       *plan
	omitEmpty  bool
	omitZero   bool
	isZero     func(reflect.Value) bool // nil: reflect's own answer
	key        string                   // the member that names the elements of a list: its patchMergeKey
}

// plans caches plans, which depend on the type alone.
var plans sync.Map // reflect.Type → *plan

func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	// Types may be recursive, so plans are published only once all are complete.
	building := planner{}
	p := building.plan(t)
	for t, p := range building {
		plans.LoadOrStore(t, p)
	}
	return p
}

// A planner holds the plans of the types met while planning a type.
type planner map[reflect.Type]*plan

var (
	marshalerType     = reflect.TypeFor[json.Marshaler]()
	textMarshalerType = reflect.TypeFor[encoding.TextMarshaler]()
	isZeroerType      = reflect.TypeFor[isZeroer]()
	numberType        = reflect.TypeFor[json.Number]()

	unmarshalerType     = reflect.TypeFor[json.Unmarshaler]()
	unmarshalerFromType = reflect.TypeFor[jsonv2.UnmarshalerFrom]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

type isZeroer interface{ IsZero() bool }

func (b planner) plan(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	if p, ok := b[t]; ok {
		return p
	}
	p := &plan{typ: t, reads: readsItself(t)}
	b[t] = p
	kind := t.Kind()
	if kind != reflect.Pointer && kind != reflect.Interface && writesItself(t) || t == numberType {
		p.kind = leaf
		return p
	}
	switch kind {
	case reflect.Bool:
		p.kind = boolean
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.kind = signed
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		p.kind = unsigned
	case reflect.Float32, reflect.Float64:
		p.kind = float
	case reflect.String:
		p.kind = text
	case reflect.Interface:
		p.kind = dynamic
	case reflect.Pointer:
		p.kind, p.elem = pointer, b.plan(t.Elem())
	case reflect.Map:
		p.kind, p.elem = mapping, b.plan(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 && !writesItself(t.Elem()) {
			p.kind = binary
			return p
		}
		p.kind, p.elem = list, b.plan(t.Elem())
	case reflect.Array:
		p.kind, p.elem = array, b.plan(t.Elem())
	case reflect.Struct:
		p.kind, p.fields = object, b.fields(t)
	}
	return p
}

// writesItself reports whether a method encodes the values of the type. A pointer
// receiver counts, although encoding/json calls it only on addressable values: encode
// asks encoding/json in any case.
func writesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(marshalerType) || p.Implements(textMarshalerType)
}

// readsItself reports whether a method decodes the values of the type.
func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface &&
		(p.Implements(unmarshalerType) || p.Implements(unmarshalerFromType) || p.Implements(textUnmarshalerType))
}

// A candidate is a field that may become a member, unless another field hides it.
type candidate struct {
	field
	tagged bool
}

// fields returns the fields of a struct by the rules of encoding/json. Of the fields
// with one name, the least nested wins, then the one named by its tag. If several
// remain, all are hidden.
func (b planner) fields(t reflect.Type) []field {
	byName := map[string][]candidate{}
	b.candidates(t, embedding{}, byName)
	var out []field
	for _, same := range byName {
		slices.SortStableFunc(same, func(x, y candidate) int {
			return cmp.Or(len(x.index)-len(y.index), compareBool(y.tagged, x.tagged))
		})
		if len(same) == 1 || len(same[0].index) < len(same[1].index) || same[0].tagged && !same[1].tagged {
			out = append(out, same[0].field)
		}
	}
	slices.SortStableFunc(out, func(x, y field) int { return slices.Compare(x.index, y.index) })
	return out
}

// An embedding is the path to an embedded struct.
type embedding struct {
	index   []int
	inside  []reflect.Type
	offset  uintptr
	pointed bool // there is a pointer on the path
}

func (b planner) candidates(t reflect.Type, in embedding, byName map[string][]candidate) {
	if slices.Contains(in.inside, t) { // a struct that embeds itself
		return
	}
	for i := range t.NumField() {
		sf := t.Field(i)
		embedded := sf.Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		if !sf.IsExported() && (!sf.Anonymous || embedded.Kind() != reflect.Struct) {
			continue
		}
		tag := sf.Tag.Get("json")
		if tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if strings.ContainsFunc(name, notInName) {
			name = ""
		}
		at := embedding{
			index:   append(slices.Clone(in.index), i),
			inside:  append(slices.Clone(in.inside), t),
			offset:  in.offset + sf.Offset,
			pointed: in.pointed,
		}
		if sf.Anonymous && name == "" && embedded.Kind() == reflect.Struct {
			if sf.Type.Kind() == reflect.Pointer {
				at.pointed = true
			}
			b.candidates(embedded, at, byName)
			continue
		}
		c := candidate{tagged: name != "", field: field{
			name:  cmp.Or(name, sf.Name),
			index: at.index,
			plan:  b.plan(sf.Type),
		}}
		if !at.pointed {
			c.start, c.end = at.offset, at.offset+sf.Type.Size()
		}
		for option := range strings.SplitSeq(options, ",") {
			switch option {
			case "omitempty":
				c.omitEmpty = true
			case "omitzero":
				c.omitZero, c.isZero = true, zeroFunc(sf.Type)
			case "string":
				c.plan = quote(c.plan)
			}
		}
		c.key = sf.Tag.Get("patchMergeKey")
		byName[c.name] = append(byName[c.name], c)
	}
}

// notInName reports whether a tag name must not contain r. For such a tag,
// encoding/json uses the field's name.
func notInName(r rune) bool {
	return !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// quote applies the option "string", for scalars and pointers to them.
func quote(p *plan) *plan {
	scalar := p
	if p.kind == pointer && p.typ.Name() == "" {
		scalar = p.elem
	}
	switch scalar.typ.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		if scalar.kind != leaf || scalar.typ == numberType {
			return &plan{kind: quoted, typ: p.typ, elem: p}
		}
	}
	return p
}

// zeroFunc returns the type's own IsZero function, or nil.
func zeroFunc(t reflect.Type) func(reflect.Value) bool {
	switch {
	case t.Kind() == reflect.Pointer && t.Implements(isZeroerType):
		return func(v reflect.Value) bool { return v.IsNil() || v.Interface().(isZeroer).IsZero() }
	case t.Kind() == reflect.Interface && t.Implements(isZeroerType):
		return func(v reflect.Value) bool {
			return v.IsNil() || v.Elem().Kind() == reflect.Pointer && v.Elem().IsNil() || v.Interface().(isZeroer).IsZero()
		}
	case reflect.PointerTo(t).Implements(isZeroerType):
		return func(v reflect.Value) bool { return addressable(v).Addr().Interface().(isZeroer).IsZero() }
	}
	return nil
}

// addressable returns v, or a copy if v is not addressable.
func addressable(v reflect.Value) reflect.Value {
	if v.CanAddr() {
		return v
	}
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	return c
}

// value returns the field of a struct. It reports false if the embedded struct that
// holds it is nil.
func (f *field) value(v reflect.Value) (value reflect.Value, ok bool) {
	if len(f.index) == 1 {
		return v.Field(f.index[0]), true
	}
	for i, at := range f.index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return reflect.Value{}, false
			}
			v = v.Elem()
		}
		v = v.Field(at)
	}
	return v, true
}

// omitted reports whether the encoding omits the value.
func (f *field) omitted(v reflect.Value) bool {
	if f.omitEmpty {
		switch v.Kind() {
		case reflect.Map, reflect.Slice, reflect.Array, reflect.String:
			if v.Len() == 0 {
				return true
			}
		case reflect.Struct:
		case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		default:
			if v.IsZero() {
				return true
			}
		}
	}
	if !f.omitZero {
		return false
	}
	if f.isZero != nil {
		return f.isZero(v)
	}
	return v.IsZero()
}

// member returns the named field, or nil.
func (p *plan) member(name string) *field {
	i := slices.IndexFunc(p.fields, func(f field) bool { return f.name == name })
	if i < 0 {
		return nil
	}
	return &p.fields[i]
}

func compareBool(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return 1
	default:
		return -1
	}
}
