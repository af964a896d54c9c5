// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"text/template/parse"
)

// A templateSet executes templates that package text/template could parse, over maps and
// structs. Package text/template itself calls methods by their names, for which the linker would
// keep all methods of the whole program: half of its size again.
type templateSet struct {
	trees     map[string]*parse.Tree
	functions map[string]templateFunction
}

type templateFunction func(args []any) (any, error)

// builtins are functions of package text/template.
var builtins = map[string]templateFunction{
	"eq": func(args []any) (any, error) { return len(args) == 2 && reflect.DeepEqual(args[0], args[1]), nil },
	"or": func(args []any) (any, error) {
		i := slices.IndexFunc(args, isTrue)
		return i >= 0, nil
	},
	"printf": func(args []any) (any, error) {
		format, ok := args[0].(string)
		if !ok {
			return nil, errors.New("printf takes a format")
		}
		return fmt.Sprintf(format, args[1:]...), nil
	},
}

// parseTemplate reads a template, and those that it defines.
func parseTemplate(name, text string, functions map[string]templateFunction) (*templateSet, error) {
	s := &templateSet{functions: functions}
	known := map[string]any{}
	for _, of := range []map[string]templateFunction{builtins, functions} {
		for name := range of {
			known[name] = true
		}
	}
	var err error
	s.trees, err = parse.Parse(name, text, "", "", known)
	return s, err
}

// execute writes a template of the set over a value.
func (s *templateSet) execute(name string, dot any) (string, error) {
	tree := s.trees[name]
	if tree == nil {
		return "", fmt.Errorf("there is no template %q", name)
	}
	e := execution{set: s, variables: []variable{{"$", dot}}}
	err := e.node(tree.Root, dot)
	return e.out.String(), err
}

type variable struct {
	name  string
	value any
}

// execution is one run of a template.
type execution struct {
	set       *templateSet
	out       strings.Builder
	variables []variable // the last one of a name counts
}

// errBreak ends a range.
var errBreak = errors.New("break outside of a range")

func (e *execution) node(node parse.Node, dot any) error {
	switch node := node.(type) {
	case *parse.ListNode:
		if node == nil {
			return nil
		}
		for _, child := range node.Nodes {
			if err := e.node(child, dot); err != nil {
				return err
			}
		}
		return nil
	case *parse.TextNode:
		e.out.Write(node.Text)
		return nil
	case *parse.CommentNode:
		return nil
	case *parse.ActionNode:
		value, err := e.pipe(node.Pipe, dot)
		if err == nil && len(node.Pipe.Decl) == 0 {
			_, err = fmt.Fprint(&e.out, value)
		}
		return err
	case *parse.IfNode:
		value, err := e.pipe(node.Pipe, dot)
		if err != nil {
			return err
		}
		if isTrue(value) {
			return e.node(node.List, dot)
		}
		return e.node(node.ElseList, dot)
	case *parse.RangeNode:
		return e.repeat(node, dot)
	case *parse.TemplateNode:
		value, err := e.pipe(node.Pipe, dot)
		if err != nil {
			return err
		}
		text, err := e.set.execute(node.Name, value)
		e.out.WriteString(text)
		return err
	case *parse.BreakNode:
		return errBreak
	}
	return fmt.Errorf("%v is not supported", node)
}

// repeat executes a range over a slice, or over a map in the order of its keys.
func (e *execution) repeat(node *parse.RangeNode, dot any) error {
	pipe := *node.Pipe
	pipe.Decl = nil // of the elements
	value, err := e.pipe(&pipe, dot)
	if err != nil {
		return err
	}
	before := len(e.variables)
	defer func() { e.variables = e.variables[:before] }()
	one := func(key, element any) error {
		e.variables = e.variables[:before]
		switch declared := node.Pipe.Decl; len(declared) {
		case 1:
			e.variables = append(e.variables, variable{declared[0].Ident[0], element})
		case 2:
			e.variables = append(e.variables, variable{declared[0].Ident[0], key}, variable{declared[1].Ident[0], element})
		}
		return e.node(node.List, element)
	}
	of := reflect.ValueOf(value)
	switch {
	case !of.IsValid() || of.Len() == 0:
		return e.node(node.ElseList, dot)
	case of.Kind() == reflect.Map:
		keys := of.MapKeys()
		slices.SortStableFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			if err = one(key.Interface(), of.MapIndex(key).Interface()); err != nil {
				break
			}
		}
	default:
		for i := range of.Len() {
			if err = one(i, of.Index(i).Interface()); err != nil {
				break
			}
		}
	}
	if errors.Is(err, errBreak) {
		return nil
	}
	return err
}

func (e *execution) pipe(pipe *parse.PipeNode, dot any) (any, error) {
	if pipe == nil {
		return nil, nil
	}
	if len(pipe.Cmds) != 1 || len(pipe.Decl) > 0 {
		return nil, fmt.Errorf("%v: pipelines and variables are not supported", pipe)
	}
	args := pipe.Cmds[0].Args
	called, ok := args[0].(*parse.IdentifierNode)
	if !ok {
		if len(args) > 1 {
			return nil, fmt.Errorf("%v is not a function", args[0])
		}
		return e.argument(args[0], dot)
	}
	function := e.set.functions[called.Ident]
	if function == nil {
		function = builtins[called.Ident]
	}
	values := make([]any, len(args)-1)
	for i, arg := range args[1:] {
		var err error
		if values[i], err = e.argument(arg, dot); err != nil {
			return nil, err
		}
	}
	return function(values)
}

func (e *execution) argument(node parse.Node, dot any) (any, error) {
	switch node := node.(type) {
	case *parse.DotNode:
		return dot, nil
	case *parse.StringNode:
		return node.Text, nil
	case *parse.FieldNode:
		return fields(dot, node.Ident)
	case *parse.PipeNode:
		return e.pipe(node, dot)
	case *parse.VariableNode:
		for _, v := range slices.Backward(e.variables) {
			if v.name == node.Ident[0] {
				return fields(v.value, node.Ident[1:])
			}
		}
	}
	return nil, fmt.Errorf("%v is not supported", node)
}

// fields follows names through structs and maps.
func fields(value any, names []string) (any, error) {
	for _, name := range names {
		of := reflect.Indirect(reflect.ValueOf(value))
		var found reflect.Value
		switch of.Kind() {
		case reflect.Struct:
			found = of.FieldByName(name)
		case reflect.Map:
			found = of.MapIndex(reflect.ValueOf(name))
		}
		if !found.IsValid() {
			return nil, fmt.Errorf("%T has no field %s", value, name)
		}
		value = found.Interface()
	}
	return value, nil
}

// isTrue tells whether a value is neither zero nor empty.
func isTrue(value any) bool {
	of := reflect.ValueOf(value)
	switch of.Kind() {
	case reflect.Invalid:
		return false
	case reflect.Slice, reflect.Map, reflect.String:
		return of.Len() > 0
	}
	return !of.IsZero()
}
