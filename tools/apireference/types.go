// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A goType is a declared type of a package.
type goType struct {
	name   string
	doc    string
	fields []field // of a struct
	values []string
}

type field struct {
	name     string // in JSON; empty for one that is inlined
	doc      string
	typ      string // for people
	refers   string // the type of the same package that is behind it, or ""
	optional bool
	tag      reflect.StructTag
}

// parsePackage reads the types of a folder, and not those of its tests.
func parsePackage(folder string) (map[string]*goType, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	types := map[string]*goType{}
	files := token.NewFileSet()
	var parsed []*ast.File
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, filepath.Join(folder, entry.Name()), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, file)
	}
	for _, file := range parsed {
		eachSpec(file, func(declaration *ast.GenDecl, spec ast.Spec) {
			if s, ok := spec.(*ast.TypeSpec); ok {
				types[s.Name.Name] = newType(declaration, s)
			}
		})
	}
	// Constants of a string type are its values, in the order in which they are declared.
	for _, file := range parsed {
		eachSpec(file, func(_ *ast.GenDecl, spec ast.Spec) {
			s, ok := spec.(*ast.ValueSpec)
			if !ok {
				return
			}
			of, ok := s.Type.(*ast.Ident)
			if !ok || types[of.Name] == nil {
				return
			}
			for _, value := range s.Values {
				if literal, ok := value.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					if text, err := strconv.Unquote(literal.Value); err == nil {
						types[of.Name].values = append(types[of.Name].values, text)
					}
				}
			}
		})
	}
	return types, nil
}

func eachSpec(file *ast.File, do func(*ast.GenDecl, ast.Spec)) {
	for _, declaration := range file.Decls {
		if general, ok := declaration.(*ast.GenDecl); ok {
			for _, spec := range general.Specs {
				do(general, spec)
			}
		}
	}
}

func newType(declaration *ast.GenDecl, spec *ast.TypeSpec) *goType {
	doc := spec.Doc
	if doc == nil {
		doc = declaration.Doc
	}
	t := &goType{name: spec.Name.Name, doc: prose(doc)}
	structure, ok := spec.Type.(*ast.StructType)
	if !ok {
		return t
	}
	for _, f := range structure.Fields.List {
		tag := ""
		if f.Tag != nil {
			tag, _ = strconv.Unquote(f.Tag.Value)
		}
		name, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		if name == "-" || name == "" && len(f.Names) > 0 {
			continue
		}
		typ, refers := describe(f.Type)
		t.fields = append(t.fields, field{
			name: name, doc: prose(f.Doc), typ: typ, refers: refers,
			optional: strings.Contains(options, "omit"), tag: reflect.StructTag(tag),
		})
	}
	return t
}

// describe writes a type as people of JSON know it.
func describe(expression ast.Expr) (text, refers string) {
	switch e := expression.(type) {
	case *ast.Ident:
		switch e.Name {
		case "string":
			return "string", ""
		case "bool":
			return "boolean", ""
		case "int", "int32", "int64":
			return "integer", ""
		}
		return e.Name, e.Name
	case *ast.StarExpr:
		return describe(e.X)
	case *ast.ArrayType:
		text, refers = describe(e.Elt)
		return "list of " + text, refers
	case *ast.MapType:
		text, refers = describe(e.Value)
		return "map to " + text, refers
	case *ast.SelectorExpr:
		switch e.Sel.Name {
		case "Duration":
			return "duration", ""
		case "RawMessage":
			return "object", ""
		case "Time":
			return "time", ""
		}
		return e.Sel.Name, ""
	}
	return fmt.Sprintf("%T", expression), ""
}

var (
	marker = regexp.MustCompile(`(?m)^\s*\+(\w|:).*$`)
	spaces = regexp.MustCompile(`\s+`)
	// brackets are doc links to other declarations.
	brackets = regexp.MustCompile(`\[([A-Za-z.]+)\]`)
)

// escape keeps text from being read as Markdown.
var escape = strings.NewReplacer("|", `\|`, "*", `\*`, "<", "&lt;")

// prose is a doc comment on one line, without what tools read.
func prose(doc *ast.CommentGroup) string {
	if doc == nil {
		return ""
	}
	text := marker.ReplaceAllString(doc.Text(), "")
	return strings.TrimSpace(spaces.ReplaceAllString(brackets.ReplaceAllString(text, "$1"), " "))
}

// render writes a table for each struct that the first ones lead to, breadth first.
func render(types map[string]*goType, s section) (string, error) {
	var out strings.Builder
	queue := slices.Clone(s.types)
	for at := 0; at < len(queue); at++ {
		t := types[queue[at]]
		if t == nil {
			return "", fmt.Errorf("there is no type %s", queue[at])
		}
		if at > 0 {
			out.WriteString("\n### " + t.name + "\n")
		}
		if t.doc != "" {
			out.WriteString("\n" + t.doc + "\n")
		}
		if len(t.values) > 0 {
			out.WriteString("\nOne of `" + strings.Join(t.values, "`, `") + "`.\n")
		}
		if len(t.fields) == 0 {
			continue
		}
		out.WriteString("\n| field | type | description |\n|---|---|---|\n")
		for _, f := range t.fields {
			if next := types[f.refers]; next != nil && !slices.Contains(queue, f.refers) {
				queue = append(queue, f.refers)
			}
			out.WriteString(row(f, types, s.required))
		}
	}
	return out.String(), nil
}

// row is a line of a table, which tells of a field that must be there.
func row(f field, types map[string]*goType, required bool) string {
	name := "`" + f.name + "`"
	if required && !f.optional {
		name += " (required)"
	}
	typ := f.typ
	if types[f.refers] != nil {
		typ = strings.ReplaceAll(typ, f.refers, "["+f.refers+"](#"+strings.ToLower(f.refers)+")")
	}
	if f.name == "" {
		return fmt.Sprintf("| | %s | its fields, inline |\n", typ)
	}
	return fmt.Sprintf("| %s | %s | %s |\n", name, typ, escape.Replace(f.doc))
}
