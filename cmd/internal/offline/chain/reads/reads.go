// SPDX-License-Identifier: Apache-2.0

// Package reads finds the fields that a CEL expression of an admission policy reads. It walks the
// expression's syntax tree, so that neither a comment nor a string literal is taken for a field.
package reads

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"k8s.io/apiserver/pkg/cel/environment"
)

// The variables of a policy's expressions: https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/
const (
	Object          = "object"
	OldObject       = "oldObject"
	Request         = "request"
	Params          = "params"
	NamespaceObject = "namespaceObject"
	variables       = "variables"
)

// Any is the element of a path that stands for each element of a list, or each value of a map.
const Any = "*"

// A Read is a field that an expression reads.
type Read struct {
	// Root is one of the variables above.
	Root string
	Path []string
	// Shallow is set if the expression depends on whether the field is there, or on how many elements
	// it has, and not on what is in it.
	Shallow bool
}

// String returns the field as users write it.
func (r Read) String() string {
	return strings.ReplaceAll(strings.Join(append([]string{r.Root}, r.Path...), "."), ".*", "[*]")
}

// parser returns the environment of the API server. What it knows of types is not used.
var parser = sync.OnceValues(func() (*cel.Env, error) {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Env(environment.StoredExpressions)
})

// Of returns the fields that an expression reads, itself and by the variables of its policy. The result may
// have fields that do not decide, and lacks none. An expression that cannot be parsed reads nothing.
func Of(expression string, ofPolicy map[string]string) []Read {
	w := &walk{variables: ofPolicy}
	w.consume(Parse(expression), nil)
	return w.reads
}

type walk struct {
	variables map[string]string
	open      []string // variables that are being walked
	reads     []Read
}

// scope has what the variables of macros stand for.
type scope map[string][]Read

// Parse returns the syntax tree of an expression with its macros expanded; nil if it cannot be parsed.
func Parse(expression string) ast.Expr {
	env, err := parser()
	if err != nil {
		return nil
	}
	parsed, issues := env.Parse(expression)
	if issues.Err() != nil {
		return nil
	}
	return parsed.NativeRep().Expr()
}

func (w *walk) record(shallow bool, places ...Read) {
	for _, p := range places {
		p.Shallow = shallow
		if !slices.ContainsFunc(w.reads, func(r Read) bool {
			return r.Root == p.Root && r.Shallow == p.Shallow && slices.Equal(r.Path, p.Path)
		}) {
			w.reads = append(w.reads, p)
		}
	}
}

// consume records that an expression's whole value is read.
func (w *walk) consume(e ast.Expr, in scope) { w.record(false, w.places(e, in)...) }

// below returns places one element deeper.
func below(places []Read, element string) []Read {
	out := make([]Read, len(places))
	for i, p := range places {
		out[i] = Read{Root: p.Root, Path: append(slices.Clone(p.Path), element)}
	}
	return out
}

// places returns the fields that an expression stands for, which are not read yet. It records what it
// reads to find them. An expression that computes something stands for no field.
func (w *walk) places(e ast.Expr, in scope) []Read {
	if e == nil {
		return nil
	}
	switch e.Kind() {
	case ast.IdentKind:
		name := e.AsIdent()
		if bound, ok := in[name]; ok {
			return bound
		}
		if slices.Contains([]string{Object, OldObject, Request, Params, NamespaceObject, variables}, name) {
			return []Read{{Root: name}}
		}
	case ast.SelectKind:
		s := e.AsSelect()
		found := w.field(w.places(s.Operand(), in), s.FieldName())
		if !s.IsTestOnly() {
			return found
		}
		w.record(true, found...)
	case ast.CallKind:
		return w.call(e.AsCall(), in)
	case ast.ComprehensionKind:
		return w.comprehension(e.AsComprehension(), in)
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			w.consume(element, in)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			w.consume(entry.AsMapEntry().Key(), in)
			w.consume(entry.AsMapEntry().Value(), in)
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			w.consume(field.AsStructField().Value(), in)
		}
	}
	return nil
}

// field returns a field of places; for a variable of the policy, that is what its expression stands for.
func (w *walk) field(places []Read, name string) []Read {
	var out []Read
	for _, p := range places {
		if p.Root != variables || len(p.Path) > 0 {
			out = append(out, below([]Read{p}, name)...)
			continue
		}
		if slices.Contains(w.open, name) { // the API server does not accept such a variable
			continue
		}
		w.open = append(w.open, name)
		out = append(out, w.places(Parse(w.variables[name]), nil)...)
		w.open = w.open[:len(w.open)-1]
	}
	return out
}

// text returns the value of a string literal.
func text(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	value, ok := e.AsLiteral().(types.String)
	return string(value), ok
}

func isNull(e ast.Expr) bool {
	return e.Kind() == ast.LiteralKind && e.AsLiteral().Type() == types.NullType
}

func (w *walk) call(c ast.CallExpr, in scope) []Read {
	args := c.Args()
	switch name := c.FunctionName(); {
	case c.IsMemberFunction() && (name == "orValue" || name == "or") && len(args) == 1:
		found := w.places(c.Target(), in)
		w.record(true, found...)
		return append(slices.Clone(found), w.places(args[0], in)...)
	case c.IsMemberFunction() && name == "value" && len(args) == 0:
		return w.places(c.Target(), in)
	case c.IsMemberFunction() && (name == "hasValue" || name == "size") && len(args) == 0:
		w.record(true, w.places(c.Target(), in)...)
	case name == "size" && len(args) == 1:
		w.record(true, w.places(args[0], in)...)
	case name == "dyn" && len(args) == 1:
		return w.places(args[0], in)
	case name == operators.Conditional:
		w.consume(args[0], in)
		return append(slices.Clone(w.places(args[1], in)), w.places(args[2], in)...)
	case (name == operators.Index || name == operators.OptIndex || name == operators.OptSelect) && len(args) == 2:
		found := w.places(args[0], in)
		if key, ok := text(args[1]); ok {
			return w.field(found, key)
		}
		w.consume(args[1], in)
		return below(found, Any)
	case (name == operators.Equals || name == operators.NotEquals) && (isNull(args[0]) || isNull(args[1])):
		w.record(true, w.places(args[0], in)...)
		w.record(true, w.places(args[1], in)...)
	case name == operators.In || name == operators.OldIn:
		found := w.places(args[1], in)
		if key, ok := text(args[0]); ok {
			w.record(true, found...)
			w.record(false, below(found, key)...)
			w.record(false, below(found, Any)...) // of a list
			break
		}
		w.consume(args[0], in)
		w.record(false, found...)
	default:
		if c.IsMemberFunction() {
			w.consume(c.Target(), in)
		}
		for _, arg := range args {
			w.consume(arg, in)
		}
	}
	return nil
}

// comprehension walks what macros such as all, exists, filter and map expand to.
func (w *walk) comprehension(c ast.ComprehensionExpr, in scope) []Read {
	over := w.places(c.IterRange(), in)
	w.record(true, over...)
	inner := scope{}
	maps.Copy(inner, in)
	if c.HasIterVar2() {
		inner[c.IterVar()], inner[c.IterVar2()] = nil, below(over, Any)
	} else {
		inner[c.IterVar()] = below(over, Any)
	}
	inner[c.AccuVar()] = nil // what goes into the result is consumed
	w.consume(c.AccuInit(), in)
	w.consume(c.LoopCondition(), inner)
	w.consume(c.LoopStep(), inner)
	return w.places(c.Result(), inner)
}
