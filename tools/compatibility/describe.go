// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/format"
	"go/types"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// describe returns the API of the packages in the folders as Go source without bodies, by the
// folder. For other packages of the module it has the types that this API names, and no more.
//
// A method that takes or returns a type below internal/ which no package outside names too is left
// out: nobody outside can call it.
func (m *module) describe(folders []string) (map[string]string, error) {
	reached := map[string]map[string]types.Object{} // by folder and name
	var next []types.Object
	named := map[types.Object]bool{} // what aliases outside of internal/ stand for
	reach := func(object types.Object) {
		if object.Pkg() == nil { // of the universe
			return
		}
		folder, ours := m.folder(object.Pkg().Path())
		if !ours || reached[folder][object.Name()] != nil {
			return
		}
		if reached[folder] == nil {
			reached[folder] = map[string]types.Object{}
		}
		reached[folder][object.Name()] = object
		next = append(next, object)
	}
	for _, folder := range folders {
		p, err := m.imports.Import(m.importPath(folder))
		if err != nil {
			return nil, err
		}
		for _, name := range p.Scope().Names() {
			if object := p.Scope().Lookup(name); object.Exported() {
				reach(object)
				if alias, ok := object.Type().(*types.Alias); ok {
					walk(alias.Rhs(), func(o types.Object) { named[o] = true })
				}
			}
		}
	}
	callable := func(method *types.Func) bool {
		ok := method.Exported()
		walk(method.Type(), func(o types.Object) {
			if o.Pkg() != nil && strings.HasPrefix(o.Pkg().Path(), m.path+"/internal/") && !named[o] {
				ok = false
			}
		})
		return ok
	}
	for len(next) > 0 {
		object := next[0]
		next = next[1:]
		uses(object, callable, reach)
	}

	files := map[string]string{}
	for folder, objects := range reached {
		source, err := describePackage(objects, callable)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.importPath(folder), err)
		}
		files[folder] = source
	}
	return files, nil
}

// uses calls reach with the types that a caller meets at an object.
func uses(object types.Object, callable func(*types.Func) bool, reach func(types.Object)) {
	named, ok := object.Type().(*types.Named)
	if _, isType := object.(*types.TypeName); !isType || !ok {
		if alias, ok := object.Type().(*types.Alias); ok && isType {
			walk(alias.Rhs(), reach)
			return
		}
		walk(object.Type(), reach)
		return
	}
	walkParameters(named.TypeParams(), reach)
	walk(named.Underlying(), reach)
	for method := range named.Methods() {
		if callable(method) {
			walk(method.Type(), reach)
		}
	}
}

// walk calls reach with the names in a type.
func walk(t types.Type, reach func(types.Object)) {
	switch t := t.(type) {
	case *types.Alias:
		reach(t.Obj())
		walkAll(t.TypeArgs(), reach)
	case *types.Named:
		reach(t.Obj())
		walkAll(t.TypeArgs(), reach)
	case interface{ Elem() types.Type }: // pointer, slice, array, channel, and map
		if m, ok := t.(*types.Map); ok {
			walk(m.Key(), reach)
		}
		walk(t.Elem(), reach)
	case *types.Signature:
		walkParameters(t.TypeParams(), reach)
		walk(t.Params(), reach)
		walk(t.Results(), reach)
	case *types.Tuple:
		for v := range t.Variables() {
			walk(v.Type(), reach)
		}
	case *types.Struct:
		for field := range t.Fields() {
			if field.Exported() || field.Embedded() {
				walk(field.Type(), reach)
			}
		}
	case *types.Interface:
		for method := range t.ExplicitMethods() {
			walk(method.Type(), reach)
		}
		for embedded := range t.EmbeddedTypes() {
			walk(embedded, reach)
		}
	case *types.Union:
		for term := range t.Terms() {
			walk(term.Type(), reach)
		}
	}
}

func walkAll(list *types.TypeList, reach func(types.Object)) {
	for i := range list.Len() {
		walk(list.At(i), reach)
	}
}

func walkParameters(list *types.TypeParamList, reach func(types.Object)) {
	for i := range list.Len() {
		walk(list.At(i).Constraint(), reach)
	}
}

// describePackage returns objects of one package as Go source.
func describePackage(objects map[string]types.Object, callable func(*types.Func) bool) (string, error) {
	var p *types.Package
	for _, object := range objects {
		p = object.Pkg()
	}
	names := map[string]string{} // of imports, by path
	qualify := func(other *types.Package) string {
		if other == p {
			return ""
		}
		name, ok := names[other.Path()]
		for n := 2; !ok; n++ {
			name = other.Name()
			if n > 2 {
				name += strconv.Itoa(n - 1)
			}
			if ok = !slices.Contains(slices.Collect(maps.Values(names)), name); ok {
				names[other.Path()] = name
			}
		}
		return name
	}
	var declarations strings.Builder
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		declaration, err := declare(objects[name], callable, qualify)
		if err != nil {
			return "", err
		}
		declarations.WriteString("\n" + declaration + "\n")
	}
	var source bytes.Buffer
	source.WriteString("// Recorded by `make record-api`, see docs/compatibility.md.\n\npackage " + p.Name() + "\n\n")
	for _, path := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(&source, "import %s %q\n", names[path], path)
	}
	source.WriteString(declarations.String())
	formatted, err := format.Source(source.Bytes())
	return string(formatted), err
}

// declare returns the declaration of an object, of a type with its exported methods.
func declare(object types.Object, callable func(*types.Func) bool, qualify types.Qualifier) (string, error) {
	text := func(t types.Type) string { return types.TypeString(t, qualify) }
	switch object := object.(type) {
	case *types.Const:
		typ := ""
		if b, ok := object.Type().(*types.Basic); !ok || b.Info()&types.IsUntyped == 0 {
			typ = text(object.Type())
		}
		return fmt.Sprintf("const %s %s = %s", object.Name(), typ, object.Val().ExactString()), nil
	case *types.Var:
		return fmt.Sprintf("var %s %s", object.Name(), text(object.Type())), nil
	case *types.Func:
		return "func " + object.Name() + strings.TrimPrefix(text(object.Type()), "func"), nil
	}
	named, ok := object.Type().(*types.Named)
	if !ok {
		alias, ok := object.Type().(*types.Alias)
		if !ok {
			return "", fmt.Errorf("%v: neither a constant, a variable, a function nor a type", object)
		}
		return fmt.Sprintf("type %s = %s", text(alias), text(alias.Rhs())), nil
	}
	underlying := text(named.Underlying())
	if s, ok := named.Underlying().(*types.Struct); ok {
		var err error
		if underlying, err = declareStruct(s, text); err != nil {
			return "", fmt.Errorf("type %s: %w", object.Name(), err)
		}
	}
	lines := []string{"type " + text(named) + " " + underlying}
	for method := range named.Methods() {
		if callable(method) {
			lines = append(lines, fmt.Sprintf("func (%s) %s%s", text(method.Signature().Recv().Type()), method.Name(), strings.TrimPrefix(text(method.Type()), "func")))
		}
	}
	slices.Sort(lines[1:])
	return strings.Join(lines, "\n"), nil
}

// declareStruct returns a struct with the fields that a caller sees. Of the others it keeps
// whether two values can be compared.
func declareStruct(s *types.Struct, text func(types.Type) string) (string, error) {
	lines := []string{"struct {"}
	comparable, hidden := true, false
	for field := range s.Fields() {
		switch {
		case field.Exported() && field.Embedded():
			lines = append(lines, text(field.Type()))
		case field.Exported():
			lines = append(lines, field.Name()+" "+text(field.Type()))
		case field.Embedded():
			return "", fmt.Errorf("embeds %s, whose exported fields and methods would not be recorded: give the field a name", field.Type())
		default:
			hidden, comparable = true, comparable && types.Comparable(field.Type())
		}
	}
	if hidden && comparable {
		lines = append(lines, "_ struct{} // fields that are not exported, and can be compared")
	} else if hidden {
		lines = append(lines, "_ []struct{} // fields that are not exported, and cannot be compared")
	}
	return strings.Join(append(lines, "}"), "\n"), nil
}
