// SPDX-License-Identifier: Apache-2.0

// Package emit makes the patches of webhooks for pods, and tells where each change comes from.
package emit

import (
	"fmt"
	"strconv"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// A Patch is a patch that grows. Its places are edited with the content that was read.
type Patch struct {
	Operations jsonpatch.Patch
	Origins    []admission.Origin
	// Err is the first problem: a part of the pod is not of its type.
	Err error

	explain bool
}

// New returns an empty patch that expects so many operations. Origins are recorded to explain it.
func New(explain bool, operations int) Patch {
	return Patch{explain: explain, Operations: make(jsonpatch.Patch, 0, operations)}
}

// A Source is a source of changes that has no more than a name.
type Source string

// String implements [fmt.Stringer].
func (s Source) String() string { return string(s) }

// Add sets a member, or inserts an element: of members, it also replaces one (RFC 6902, section 4.1).
func (p *Patch) Add(path string, value []byte) { p.add(jsonpatch.Add, path, value) }

// Replace replaces a value that is there.
func (p *Patch) Replace(path string, value []byte) { p.add(jsonpatch.Replace, path, value) }

func (p *Patch) add(op, path string, value []byte) {
	p.Operations = append(p.Operations, jsonpatch.Operation{Op: op, Path: path, Value: value})
}

// Edit adds what a builder has.
func (p *Patch) Edit(b *jsonpatch.Builder) {
	if p.Err == nil {
		p.Operations, p.Err = b.AppendPatch(p.Operations)
	}
}

// Origin records the origin of the value at the tokens below a pointer.
func (p *Patch) Origin(of fmt.Stringer, pointer string, tokens ...string) {
	if p.explain {
		p.Origins = append(p.Origins, admission.Origin{Path: pointer + jsonpatch.Pointer(tokens...), Source: of.String()})
	}
}

// OriginAt records the origin of an element of a list.
func (p *Patch) OriginAt(of fmt.Stringer, list string, index int) {
	if p.explain {
		p.Origin(of, list, strconv.Itoa(index))
	}
}

// Explains reports whether origins are recorded.
func (p *Patch) Explains() bool { return p.explain }

// Response returns the answer with the patch.
func (p *Patch) Response() *admission.Response {
	resp := admission.Patched(p.Operations)
	resp.Origins = p.Origins
	return resp
}
