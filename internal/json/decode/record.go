// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"encoding/json"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A Record holds the values read into an object, in JSON order, and later tells what a
// handler changed in the object. Most calls of most mutating webhooks change nothing.
// Scanning a record takes a fraction of the time of decoding or copying the object and
// comparing the two.
//
// A record compares contents, never addresses, so it works whatever happens to the
// object's memory. It may report false positives, but never misses a change: it looks at
// every field that appears in the JSON.
type Record struct {
	typ     *Type   // nil if the object has no record
	numbers []int64 // integers and lengths; nothing stands for null
	strings []string
	raws    [][]byte // of values that decode themselves: parts of the object's JSON
	// quantities are what raws of that type were decoded to: comparing with them takes a
	// quarter of the time of decoding again. They share no digits with the object.
	quantities []resource.Quantity
	ports      []intstr.IntOrString // these decode themselves, too, but slowly
}

// nothing stands for null. No length or field uses this number, and objects with an
// integer that does have no record.
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
	clear(m.quantities)
	clear(m.ports)
	*m = Record{numbers: m.numbers[:0], strings: m.strings[:0], raws: m.raws[:0], quantities: m.quantities[:0], ports: m.ports[:0]}
	records.Put(m)
}

// of completes the record. On a nil record, this and the methods below do nothing.
func (m *Record) of(t *Type) {
	if m != nil {
		m.typ = t
	}
}

// null, number, text, port and raw record a value.
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

func (m *Record) port(port intstr.IntOrString) {
	if m != nil {
		m.numbers = append(m.numbers, 0)
		m.ports = append(m.ports, port)
	}
}

// self records what raw was decoded to.
func (m *Record) self(raw []byte, value json.Unmarshaler) {
	if m == nil {
		return
	}
	m.raws = append(m.raws, raw)
	if quantity, ok := value.(*resource.Quantity); ok {
		m.quantities = append(m.quantities, quantity.DeepCopy())
	}
}

// quantity records an entry of a map of quantities.
func (m *Record) quantity(key string, raw []byte, amount resource.Quantity) {
	if m != nil {
		m.strings, m.raws, m.quantities = append(m.strings, key), append(m.raws, raw), append(m.quantities, amount.DeepCopy())
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

// Before returns what value, the recorded object, was when it was read: value itself if
// it still holds that, and otherwise another pointer, to a value that shares memory with
// it wherever nothing has changed. It is there to be compared with value, while nobody
// changes either. Before returns nil if the object has no record.
func (m *Record) Before(value any) any {
	if m.typ == nil {
		return nil
	}
	c := comparison{record: m}
	before := reflect.New(m.typ.elem)
	before.Elem().Set(reflect.ValueOf(value).Elem())
	switch same := c.value(m.typ.layout, before.UnsafePointer(), true); {
	case c.failed:
		return nil
	case same:
		return value
	}
	return before.Interface()
}
