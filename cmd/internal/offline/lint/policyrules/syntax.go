// SPDX-License-Identifier: Apache-2.0

package policyrules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// any stands for a part of a path that is computed.
const computed = "*"

// visit calls a function for an expression and everything in it.
func visit(e ast.Expr, f func(ast.Expr)) {
	if e != nil {
		ast.PreOrderVisit(e, ast.NewExprVisitor(f))
	}
}

// loops returns how many loops over independent lists are nested. A loop over a field of an outer loop's element, such
// as the variables of each container, does not multiply the cost, and neither does one over a literal list.
func loops(e ast.Expr, outer ...string) int {
	if e == nil {
		return 0
	}
	deepest := 0
	below := func(list ...ast.Expr) {
		for _, one := range list {
			deepest = max(deepest, loops(one, outer...))
		}
	}
	switch e.Kind() {
	case ast.CallKind:
		if e.AsCall().IsMemberFunction() {
			below(e.AsCall().Target())
		}
		below(e.AsCall().Args()...)
	case ast.SelectKind:
		below(e.AsSelect().Operand())
	case ast.ListKind:
		below(e.AsList().Elements()...)
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			below(entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			below(field.AsStructField().Value())
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		body := max(loops(c.LoopCondition(), append(slices.Clone(outer), c.IterVar(), c.IterVar2())...), loops(c.LoopStep(), append(slices.Clone(outer), c.IterVar(), c.IterVar2())...))
		if c.IterRange().Kind() != ast.ListKind && !mentions(c.IterRange(), outer) {
			body++
		} else if c.IterRange().Kind() == ast.ListKind { // its variable names a list: loops over it are independent
			body = max(loops(c.LoopCondition(), outer...), loops(c.LoopStep(), outer...))
		}
		deepest = body
		below(c.IterRange(), c.Result())
	}
	return deepest
}

// mentions reports whether an expression has one of the variables.
func mentions(e ast.Expr, variables []string) bool {
	found := false
	visit(e, func(e ast.Expr) {
		found = found || e.Kind() == ast.IdentKind && e.AsIdent() != "" && slices.Contains(variables, e.AsIdent())
	})
	return found
}

// fold returns a string expression with computed parts replaced by [computed]; ok is false if none of it is
// literal.
func fold(e ast.Expr) (text string, ok bool) {
	switch e.Kind() {
	case ast.LiteralKind:
		if value, isString := e.AsLiteral().(types.String); isString {
			return string(value), true
		}
	case ast.CallKind:
		if c := e.AsCall(); c.FunctionName() == operators.Add && len(c.Args()) == 2 {
			a, okA := fold(c.Args()[0])
			b, okB := fold(c.Args()[1])
			return a + b, okA || okB
		}
	}
	return computed, false
}

// write is something that a mutation writes.
type write struct {
	path []string // with "*" for what is computed, and "-" for the end of a list
	op   string   // of a JSON patch
	// value is a literal, as text; "" if it is computed.
	value string
}

func (w write) String() string { return strings.Join(w.path, ".") }

// operations returns the operations of JSON patches in an expression.
func operationsOf(e ast.Expr) []write {
	var out []write
	visit(e, func(e ast.Expr) {
		if e.Kind() != ast.StructKind || e.AsStruct().TypeName() != "JSONPatch" {
			return
		}
		var w write
		for _, field := range e.AsStruct().Fields() {
			f := field.AsStructField()
			switch f.Name() {
			case "op":
				w.op, _ = fold(f.Value())
			case "path":
				path, _ := fold(f.Value())
				for _, part := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
					if strings.Contains(part, computed) {
						part = computed
					}
					w.path = append(w.path, strings.NewReplacer("~1", "/", "~0", "~").Replace(part))
				}
			case "value":
				w.value = literal(f.Value())
			}
		}
		out = append(out, w)
	})
	return out
}

// literal returns a scalar literal as text, or "".
func literal(e ast.Expr) string {
	if e.Kind() != ast.LiteralKind {
		return ""
	}
	return fmt.Sprintf("%s %v", e.AsLiteral().Type(), e.AsLiteral().Value())
}

// applied returns the leaves that an apply configuration writes.
func applied(e ast.Expr) []write {
	var out []write
	visit(e, func(e ast.Expr) {
		if e.Kind() == ast.StructKind && e.AsStruct().TypeName() == "Object" {
			out = leaves(out, e, nil)
		}
	})
	return out
}

func leaves(out []write, e ast.Expr, path []string) []write {
	switch e.Kind() {
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			f := field.AsStructField()
			out = leaves(out, f.Value(), append(slices.Clone(path), f.Name()))
		}
		return out
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			key, _ := fold(entry.AsMapEntry().Key())
			out = leaves(out, entry.AsMapEntry().Value(), append(slices.Clone(path), key))
		}
		return out
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			name := computed
			if element.Kind() == ast.StructKind {
				for _, field := range element.AsStruct().Fields() {
					if f := field.AsStructField(); f.Name() == "name" && literal(f.Value()) != "" {
						name, _ = fold(f.Value())
					}
				}
			}
			out = leaves(out, element, append(slices.Clone(path), name))
		}
		return out
	}
	return append(out, write{path: path, value: literal(e)})
}

// prefixed reports whether a path is at or below another one; computed parts match all.
func prefixed(path, prefix []string) bool {
	if len(path) < len(prefix) {
		return false
	}
	for i, part := range prefix {
		if part != path[i] && part != computed && path[i] != computed {
			return false
		}
	}
	return true
}
