// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"reflect"
	"sync"
	"time"
	"unsafe"
)

// An Imprint is a copy of the memory that an object was read into, byte for byte, to
// tell later whether anybody changed the object. Most calls of most mutating webhooks
// change nothing, and comparing the memory takes a twentieth of what a deep copy and a
// comparison of two objects take.
//
// What it tells is safe in one direction: an object that is unchanged to it has not
// been changed. The other way round it may see a change where the object means the
// same as before.
type Imprint struct {
	blocks  []block
	maps    []keyed
	entries []entry
	// bytes are what the blocks held, one behind the other, and then what the entries
	// of the maps held.
	bytes []byte
	elems []byte
	// Opaque is true if the object holds memory whose changes would not be seen.
	Opaque bool
}

// A block is memory of its own: a struct, the elements of a list.
type block struct {
	at   unsafe.Pointer
	size uintptr
}

// An entry is one of a map of strings, or, with a length, says how many it had.
type entry struct {
	in         map[string]string
	key, value string
	length     int // -1 for an entry
}

// A keyed is a map with a key that it had, or only with its length.
type keyed struct {
	value  reflect.Value
	key    reflect.Value
	length int
}

var imprints = sync.Pool{New: func() any { return new(Imprint) }}

// NewImprint returns an empty one. Release it when it is of no more use.
func NewImprint() *Imprint { return imprints.Get().(*Imprint) }

// Release takes an imprint back. It must not be used any more.
func (m *Imprint) Release() {
	if m == nil || cap(m.bytes) > 1<<20 {
		return
	}
	clear(m.blocks)
	clear(m.maps)
	clear(m.entries)
	*m = Imprint{blocks: m.blocks[:0], maps: m.maps[:0], entries: m.entries[:0], bytes: m.bytes[:0], elems: m.elems[:0]}
	imprints.Put(m)
}

// block says that the object has memory there. A nil imprint takes nothing, here and
// below.
func (m *Imprint) block(at unsafe.Pointer, size uintptr) {
	if m != nil && size > 0 {
		m.blocks = append(m.blocks, block{at, size})
	}
}

// texts says that the object has a map of strings, with all its entries.
func (m *Imprint) texts(in map[string]string) {
	if m != nil {
		m.entries = append(m.entries, entry{in: in, length: len(in)})
	}
}

// text says that a map of strings has an entry.
func (m *Imprint) text(in map[string]string, key, value string) {
	if m != nil {
		m.entries = append(m.entries, entry{in: in, key: key, value: value, length: -1})
	}
}

// mapping says that the object has a map, with all its entries.
func (m *Imprint) mapping(value reflect.Value) {
	if m != nil {
		m.maps = append(m.maps, keyed{value: value, length: value.Len()})
	}
}

// entry says that a map has an entry, and copies the value.
func (m *Imprint) entry(value, key, elem reflect.Value) {
	if m != nil {
		m.maps = append(m.maps, keyed{value: value, key: key})
		m.elems = append(m.elems, memory(elem)...)
	}
}

// memory returns the bytes of a value that can be addressed.
func memory(value reflect.Value) []byte {
	return unsafe.Slice((*byte)(value.Addr().UnsafePointer()), value.Type().Size())
}

// outside takes what a value points to of which nothing is known but its type. Its own
// memory is part of a block.
func (m *Imprint) outside(value reflect.Value) {
	if m == nil || m.Opaque {
		return
	}
	switch value.Kind() {
	case reflect.Struct:
		for i := range value.NumField() {
			m.outside(value.Field(i))
		}
	case reflect.Slice:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			m.block(value.UnsafePointer(), uintptr(value.Len()))
		} else {
			m.Opaque = !value.IsNil()
		}
	case reflect.Pointer: // locations of times cannot be changed
		m.Opaque = !value.IsNil() && value.Type() != reflect.TypeFor[*time.Location]()
	case reflect.Map, reflect.Interface, reflect.Func, reflect.Chan:
		m.Opaque = !value.IsNil()
	case reflect.Array, reflect.UnsafePointer:
		m.Opaque = true
	}
}

// take copies the blocks, now that all of them are filled.
func (m *Imprint) take() {
	if m == nil {
		return
	}
	for _, b := range m.blocks {
		m.bytes = append(m.bytes, unsafe.Slice((*byte)(b.at), b.size)...)
	}
}

// Unchanged tells whether the memory holds what it held.
func (m *Imprint) Unchanged() bool {
	if m == nil || m.Opaque {
		return false
	}
	rest := m.bytes
	for _, b := range m.blocks {
		if string(unsafe.Slice((*byte)(b.at), b.size)) != string(rest[:b.size]) {
			return false
		}
		rest = rest[b.size:]
	}
	for i := range m.entries {
		e := &m.entries[i]
		if e.length >= 0 {
			if len(e.in) != e.length {
				return false
			}
		} else if value, ok := e.in[e.key]; !ok || value != e.value {
			return false
		}
	}
	elems := m.elems
	for _, k := range m.maps {
		if !k.key.IsValid() {
			if k.value.Len() != k.length {
				return false
			}
			continue
		}
		elem := reflect.New(k.value.Type().Elem()).Elem()
		now := k.value.MapIndex(k.key)
		if !now.IsValid() {
			return false
		}
		elem.Set(now)
		is := memory(elem)
		if string(is) != string(elems[:len(is)]) {
			return false
		}
		elems = elems[len(is):]
	}
	return true
}
