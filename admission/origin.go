// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

type originsKey struct{}

// WithOrigins requests [Response.Origins] from handlers, to show where a change comes from:
// `sallyport review`, tests. It doubles the cost of typed handlers, so it is off by
// default.
func WithOrigins(ctx context.Context) context.Context {
	return context.WithValue(ctx, originsKey{}, true)
}

// WantsOrigins reports whether origins are requested, see [WithOrigins].
func WantsOrigins(ctx context.Context) bool {
	wants, _ := ctx.Value(originsKey{}).(bool)
	return wants
}

// A trace follows a document through patches and knows who put what into it. A nil
// trace follows nothing.
type trace struct {
	root    *traced
	removed []Origin

	target *target
	raw    []byte         // the current document
	last   runtime.Object // that raw was decoded into
}

// newTrace begins to follow an object, if anybody wants to know.
func newTrace(ctx context.Context, target *target, raw []byte, object runtime.Object) *trace {
	if !WantsOrigins(ctx) {
		return nil
	}
	return &trace{root: &traced{raw: raw}, target: target, raw: raw, last: object}
}

// step notes what the source has changed since the last step.
func (t *trace) step(source string, object runtime.Object) error {
	if t == nil {
		return nil
	}
	patch, err := jsonpatch.DiffRaw(t.raw, t.last, object)
	if err != nil {
		return fmt.Errorf("the changes of %s cannot be written as a patch: %w", source, err)
	}
	if len(patch) == 0 {
		return nil
	}
	if err := t.apply(patch, source); err != nil {
		return err
	}
	if t.raw, err = applyPatch(t.raw, patch); err != nil {
		return err
	}
	// Not a copy: a tree of maps may hold what only a decoder would not put there, an int
	// for example.
	t.last, err = t.target.decode(t.raw, "object")
	return err
}

// merge notes a patch whose origins are known.
func (t *trace) merge(patch jsonpatch.Patch, origins []Origin) error {
	removed := t.removed
	if err := t.apply(patch, ""); err != nil {
		return err
	}
	t.removed = removed
	for _, origin := range origins {
		tokens, err := jsonpatch.SplitPointer(origin.Path)
		if err != nil {
			return fmt.Errorf("origin %q: %w", origin.Path, err)
		}
		if n := t.root.at(tokens); n != nil {
			n.source = origin.Source
		} else {
			t.removed = append(t.removed, origin)
		}
	}
	return nil
}

// origins tells who put what where: in the order of the document, and then what
// was removed.
func (t *trace) origins() []Origin {
	if t == nil {
		return nil
	}
	return append(t.root.origins(nil, nil), t.removed...)
}

// apply applies a patch of the source.
func (t *trace) apply(patch jsonpatch.Patch, source string) error {
	for _, op := range patch {
		if !t.operation(op, source) {
			return fmt.Errorf("the patch of %s does not apply: %s %s", source, op.Op, op.Path)
		}
	}
	return nil
}

func (t *trace) operation(op jsonpatch.Operation, source string) bool {
	tokens, err := jsonpatch.SplitPointer(op.Path)
	if err != nil {
		return false
	}
	switch op.Op {
	case jsonpatch.Test:
		return true
	case jsonpatch.Remove:
		taken := t.root.take(tokens)
		if taken != nil && taken.source == "" { // else it was not there at first
			t.removed = append(t.removed, Origin{Path: op.Path, Source: source})
		}
		return taken != nil
	case jsonpatch.Add:
		return t.put(tokens, &traced{raw: op.Value, source: source}, true)
	case jsonpatch.Replace:
		return t.put(tokens, &traced{raw: op.Value, source: source}, false)
	case jsonpatch.Move, jsonpatch.Copy:
		from, err := jsonpatch.SplitPointer(op.From)
		if err != nil {
			return false
		}
		n := t.root.at(from)
		if n != nil && op.Op == jsonpatch.Copy {
			n = n.clone()
		} else if n != nil {
			t.root.take(from)
		}
		if n == nil {
			return false
		}
		if n.source == "" || op.Op == jsonpatch.Copy {
			n.source = source
		}
		return t.put(tokens, n, true)
	}
	return false
}

// put adds or replaces what stands at the tokens.
func (t *trace) put(tokens []string, n *traced, insert bool) bool {
	if len(tokens) == 0 {
		t.root = n.keeping(t.root)
		return true
	}
	last := len(tokens) - 1
	parent := t.root.at(tokens[:last])
	if parent == nil {
		return false
	}
	parent.open()
	i := parent.find(tokens[last])
	switch {
	case parent.kind == '{' && i < 0:
		parent.names = append(parent.names, tokens[last])
		parent.children = append(parent.children, n)
	case parent.kind == '[' && insert && tokens[last] == "-":
		parent.children = append(parent.children, n)
	case parent.kind == '[' && insert && i >= 0:
		parent.children = slices.Insert(parent.children, i, n)
	case i >= 0 && i < len(parent.children):
		parent.children[i] = n.keeping(parent.children[i])
	default:
		return false
	}
	return true
}

// A traced value knows its source, or that of its parts. What nobody looked into
// is not read.
type traced struct {
	raw      []byte
	source   string
	opened   bool
	kind     byte     // '{' or '[', or something else
	names    []string // of the children, in an object
	children []*traced
}

func (n *traced) open() {
	if n.opened {
		return
	}
	n.opened = true
	r := rawjson.NewReader(n.raw)
	n.kind = byte(r.Kind())
	switch n.kind {
	case '{':
		r.Object(func(name []byte) {
			n.names = append(n.names, string(name))
			n.children = append(n.children, &traced{raw: r.Value()})
		})
	case '[':
		r.Array(func(int) { n.children = append(n.children, &traced{raw: r.Value()}) })
	}
}

// find returns the index of a child, -1 if there is none. In a list it may be one
// behind the last.
func (n *traced) find(token string) int {
	n.open()
	if n.kind == '[' {
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i <= len(n.children) {
			return i
		}
		return -1
	}
	return slices.Index(n.names, token)
}

func (n *traced) at(tokens []string) *traced {
	for _, token := range tokens {
		i := n.find(token)
		if i < 0 || i >= len(n.children) {
			return nil
		}
		n = n.children[i]
	}
	return n
}

// take removes a value and returns it.
func (n *traced) take(tokens []string) *traced {
	if len(tokens) == 0 {
		return nil
	}
	last := len(tokens) - 1
	parent := n.at(tokens[:last])
	if parent == nil {
		return nil
	}
	i := parent.find(tokens[last])
	if i < 0 || i >= len(parent.children) {
		return nil
	}
	taken := parent.children[i]
	parent.children = slices.Delete(parent.children, i, i+1)
	if parent.kind == '{' {
		parent.names = slices.Delete(parent.names, i, i+1)
	}
	return taken
}

// keeping returns n in the place of old. Where a list takes the place of a list,
// the elements that were there before are not the source's.
func (n *traced) keeping(old *traced) *traced {
	n.open()
	old.open()
	if n.kind != '[' || old.kind != '[' || len(old.children) == 0 {
		return n
	}
	left := slices.Clone(old.children)
	for i, child := range n.children {
		j := slices.IndexFunc(left, func(o *traced) bool { return bytes.Equal(o.raw, child.raw) })
		if j >= 0 {
			n.children[i] = left[j]
			left = slices.Delete(left, j, j+1)
		} else {
			child.source = n.source
		}
	}
	n.source = ""
	return n
}

func (n *traced) clone() *traced {
	c := *n
	c.names = slices.Clone(n.names)
	c.children = make([]*traced, len(n.children))
	for i, child := range n.children {
		c.children[i] = child.clone()
	}
	return &c
}

func (n *traced) origins(path []string, out []Origin) []Origin {
	if n.source != "" {
		out = append(out, Origin{Path: jsonpatch.Pointer(path...), Source: n.source})
	}
	for i, child := range n.children {
		token := strconv.Itoa(i)
		if n.kind == '{' {
			token = n.names[i]
		}
		out = child.origins(append(path, token), out)
	}
	return out
}
