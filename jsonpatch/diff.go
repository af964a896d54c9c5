// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// Diff returns the patch that turns the JSON of before into the JSON of after. Both
// have the same type, one that encoding/json can encode: Kubernetes API structs,
// pointers to them, maps, *unstructured.Unstructured. Diff changes neither. Memory that
// both share counts as unchanged, so after must be a deep copy wherever it was changed.
//
// The patch applies to the encoding/json form of before. The document that before was
// decoded from may differ: it may hold unknown members and lack members that are always
// encoded. Use [DiffRaw] for it.
//
// The patch holds only differences, at the place where they are:
//
//   - Numbers, quantities and times keep every digit. Types with their own encoding are
//     compared by what they encode.
//   - What encoding/json omits is absent. Null and empty differ where encoding/json
//     distinguishes them.
//   - List elements keep their identity. They are matched by the member in the field's
//     patchMergeKey tag. Without a tag, they are matched by a member that names all
//     elements (name, uid, type and the like), otherwise by the longest common
//     subsequence of equal elements and by likeness. Elements that stay are edited in
//     place or moved, never rewritten.
//   - The same values give the same bytes.
//
// An error means that encoding/json cannot encode a value, or that the types differ.
func Diff(before, after any) (Patch, error) {
	d, err := compare(before, after)
	if err != nil || !d.root.edited() {
		return nil, err
	}
	var e emitter
	e.blind(&d.root, Replace)
	if e.err != nil {
		return nil, e.err
	}
	return e.patch, nil
}

// DiffRaw is [Diff] for the document that before was decoded from. Its patch applies to
// raw exactly the changes between before and after. Unknown members stay in place, also
// in list elements that move. Parents that raw lacks or where it has null are created.
// A type with its own decoding may accept short forms, such as "nginx" for a struct.
// Where raw has a shape other than the value's, the value replaces it. Raw must be
// valid JSON, see [NewBuilder].
//
// It is an error if before cannot have been decoded from raw.
func DiffRaw(raw []byte, before, after any) (Patch, error) {
	d, err := compare(before, after)
	if err != nil || !d.root.edited() {
		return nil, err
	}
	e := emitter{reader: rawjson.NewReader(raw), path: make([]byte, 0, 128), patch: make(Patch, 0, 8)}
	if e.reader.Kind() == 0 {
		return nil, errors.New("there is no document to edit")
	}
	e.node(&d.root, Replace)
	if e.err != nil {
		return nil, fmt.Errorf("the object was not decoded from this document: %w", e.err)
	}
	return e.patch, nil
}

// untyped is what k8s.io/apimachinery calls unstructured: objects that hold their JSON
// as a tree of maps.
type untyped interface {
	UnstructuredContent() map[string]any
}

func content(object any) any {
	u, ok := object.(untyped)
	if !ok {
		return object
	}
	if v := reflect.ValueOf(object); v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	return u.UnstructuredContent()
}

func compare(before, after any) (*differ, error) {
	if x, y := reflect.TypeOf(before), reflect.TypeOf(after); x != y {
		return nil, fmt.Errorf("cannot compare %v with %v: they must be of one type", x, y)
	}
	before, after = content(before), content(after)
	d := &differ{steps: make([]step, 0, 8)}
	d.root.whole = whole{value: reflect.ValueOf(after)}
	d.tree(before, after)
	return d, d.err
}

// A differ walks two values together and records differences in a tree of edits.
type differ struct {
	root  node
	steps []step // the path from the root to the current values
	// probing is above zero while the walk only asks whether something differs.
	probing int
	err     error

	names   []string // scratch space of members
	entries []entry  // scratch space of mapping
}

// A step leads to a member or element.
type step struct {
	token  string
	index  int   // of the element, -1 for a member
	node   *node // once there is a difference
	whole  whole
	absent bool // see node
}

func (d *differ) enter(s step) {
	d.steps = append(d.steps, s)
	if len(d.steps) > maxNesting {
		d.fail(fmt.Errorf("nested deeper than %d levels", maxNesting))
	}
}

func (d *differ) leave() { d.steps = d.steps[:len(d.steps)-1] }

// here returns the node of the current place.
func (d *differ) here() *node {
	n := &d.root
	for i := range d.steps {
		s := &d.steps[i]
		if s.node == nil {
			if s.index >= 0 {
				s.token = itoa(s.index)
			}
			s.node = n.add(&node{token: s.token, absent: s.absent, whole: s.whole})
		}
		n = s.node
	}
	return n
}

// fail keeps the first error, with its place.
func (d *differ) fail(err error) {
	if d.err != nil {
		return
	}
	var path []byte
	for _, s := range d.steps[:min(len(d.steps), 50)] {
		if s.index >= 0 {
			s.token = itoa(s.index)
		}
		path = appendToken(path, s.token)
	}
	d.err = fmt.Errorf("%s: %w", place(path), err)
}

// probe reports whether two values have the same JSON.
func (d *differ) probe(p *plan, before, after reflect.Value) bool {
	d.probing++
	same := d.walk(p, before, after)
	d.probing--
	return same
}

// replace records that the place gets another value.
func (d *differ) replace(p *plan, after reflect.Value) bool {
	return d.set(whole{p, after})
}

func (d *differ) set(w whole) bool {
	if d.probing > 0 {
		return false
	}
	value, err := w.encode()
	if err != nil {
		d.fail(err)
		return false
	}
	d.here().replace(value)
	return false
}

// remove records that the place is removed.
func (d *differ) remove() bool {
	if d.probing == 0 {
		d.here().removed = true
	}
	return false
}

// walk compares two values of the plan's type and records differences. It reports
// whether there are none. While probing it stops at the first difference.
func (d *differ) walk(p *plan, before, after reflect.Value) bool {
	if d.err != nil {
		return true
	}
	same := false
	switch p.kind {
	case boolean, signed, unsigned, float, text:
		same = p.equal(before, after)
	case binary:
		same = before.IsNil() == after.IsNil() && bytes.Equal(before.Bytes(), after.Bytes())
	case quoted:
		same = d.probe(p.elem, before, after)
	case pointer, dynamic:
		switch {
		case before.IsNil() || after.IsNil():
			same = before.IsNil() && after.IsNil()
		case p.kind == dynamic:
			return d.tree(before.Interface(), after.Interface())
		default:
			return before.Pointer() == after.Pointer() || d.walk(p.elem, before.Elem(), after.Elem())
		}
	case object:
		return d.object(p, before, after)
	case array:
		// As a whole: the array in the document may have been longer or shorter.
		same = true
		for i := 0; same && i < before.Len(); i++ {
			same = d.probe(p.elem, before.Index(i), after.Index(i))
		}
	case list:
		return d.list(p, "", before, after)
	case mapping:
		return d.mapping(p, before, after)
	default:
		return d.leaf(p, before, after)
	}
	return same || d.replace(p, after)
}

// equal reports whether two scalars are equal; false for other values.
func (p *plan) equal(before, after reflect.Value) bool {
	switch p.kind {
	case text:
		return before.String() == after.String()
	case boolean:
		return before.Bool() == after.Bool()
	case signed:
		return before.Int() == after.Int()
	case unsigned:
		return before.Uint() == after.Uint()
	case float:
		return before.Float() == after.Float()
	}
	return false
}

func (d *differ) object(p *plan, before, after reflect.Value) bool {
	same := true
	x, y := p.memory(before), p.memory(after)
	if x != nil && string(x) == string(y) {
		return true
	}
	for i := range p.fields {
		f := &p.fields[i]
		if x != nil && y != nil && f.end > 0 && string(x[f.start:f.end]) == string(y[f.start:f.end]) {
			continue
		}
		b, hadB := f.value(before)
		a, hasA := f.value(after)
		if hadB && hasA && f.plan.equal(b, a) {
			continue
		}
		wrote, writes := hadB && !f.omitted(b), hasA && !f.omitted(a)
		if !wrote && !writes {
			continue
		}
		d.enter(step{token: f.name, index: -1, whole: whole{f.plan, a}, absent: !wrote})
		memberSame := false
		switch {
		case wrote && writes && f.plan.kind == list:
			memberSame = d.list(f.plan, f.key, b, a)
		case wrote && writes:
			memberSame = d.walk(f.plan, b, a)
		case writes && hadB && f.plan.kind == object:
			if d.probing == 0 { // the document may have unknown members there
				d.here()
				d.walk(f.plan, b, a)
			}
		case writes:
			d.replace(f.plan, a)
		case f.plan.kind == object:
			d.vanish(f.plan)
		default:
			d.remove()
		}
		d.leave()
		if !memberSame {
			if d.probing > 0 {
				return false
			}
			same = false
		}
	}
	return same
}

// vanish records that a struct becomes omitted. Its members go, and the struct with
// them unless the document has unknown members in it.
func (d *differ) vanish(p *plan) {
	if d.probing > 0 {
		return
	}
	n := d.here()
	n.vanishes = true
	for i := range p.fields {
		n.add(&node{token: p.fields[i].name, removed: true})
	}
}

// leaf compares values with their own encoding. If both encode as objects, or both as
// arrays, it records only the differences inside. If the document has another form of
// them, the whole value is overwritten.
func (d *differ) leaf(p *plan, before, after reflect.Value) bool {
	if identical(before, after) {
		return true
	}
	b, err := p.encode(before)
	if err != nil {
		d.fail(err)
		return false
	}
	a, err := p.encode(after)
	if err != nil {
		d.fail(err)
		return false
	}
	if bytes.Equal(b, a) {
		return true
	}
	if b[0] != a[0] || b[0] != '{' && b[0] != '[' {
		return d.replace(p, after)
	}
	x, y := decode(b), decode(a)
	if reflect.DeepEqual(x, y) {
		return true
	}
	if d.probing == 0 {
		d.here().written = b
	}
	return d.tree(x, y)
}

// decode reads checked JSON.
func decode(value []byte) (tree any) {
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	if dec.Decode(&tree) != nil {
		return nil
	}
	return tree
}

// identical reports, by fields and without calling methods, whether two values are
// surely equal.
func identical(before, after reflect.Value) bool {
	switch before.Kind() {
	case reflect.Struct:
		for i := range before.NumField() {
			if !identical(before.Field(i), after.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if before.Type().Elem().Kind() == reflect.Uint8 {
			return before.IsNil() == after.IsNil() && bytes.Equal(before.Bytes(), after.Bytes())
		}
		return before.IsNil() && after.IsNil()
	case reflect.Array:
		for i := range before.Len() {
			if !identical(before.Index(i), after.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map, reflect.Func, reflect.Interface:
		return before.IsNil() && after.IsNil()
	default:
		return before.Equal(after)
	}
}
