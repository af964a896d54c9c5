// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// experimental is the module whose README asks not to depend on it publicly.
const experimental = "github.com/go-json-experiment/json"

// TestPublicPackagesDoNotNameExperimentalTypes: what callers can reach from a public package has no
// type of the module.
func TestPublicPackagesDoNotNameExperimentalTypes(t *testing.T) {
	imports, public := exportData(t)
	if len(public) < 10 {
		t.Fatalf("only %d public packages were found: %v", len(public), public)
	}
	found := map[string]bool{}
	for _, path := range public {
		p, err := imports.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, place := range experimentalTypes(p) {
			found[place] = true
		}
	}
	for _, place := range slices.Sorted(maps.Keys(found)) {
		t.Errorf("%s: use json.RawMessage of encoding/json", place)
	}
}

func TestExperimentalTypesAreFound(t *testing.T) {
	imports, _ := exportData(t)
	for name, test := range map[string]struct {
		source string
		want   []string
	}{
		"a result":                            {"func New() jsontext.Value", []string{"p.New"}},
		"an element of a variadic parameter":  {"func New(values ...jsontext.Value)", []string{"p.New"}},
		"a field":                             {"type T struct { V, v jsontext.Value; w []jsontext.Value }", []string{"p.T.V"}},
		"a field of an embedded type":         {"type T struct { t }; type t struct { V jsontext.Value }", []string{"p.t.V"}},
		"a method":                            {"type T struct{}; func (*T) M(map[string]jsontext.Value)", []string{"p.T.M"}},
		"a method of a type of a signature":   {"func New() *t; type t struct{}; func (t) M() jsontext.Kind", []string{"p.t.M"}},
		"a method of an interface":            {"type T interface { M() func() jsontext.Value }", []string{"p.T.M"}},
		"a type argument":                     {"type G[T any] struct{}; var V G[jsontext.Value]", []string{"p.V"}},
		"a constraint":                        {"func F[T jsontext.Value](T)", []string{"p.F"}},
		"an alias":                            {"type T = jsontext.Value", []string{"p.T"}},
		"an underlying type":                  {"type T []jsontext.Value", []string{"p.T"}},
		"a type that refers to itself":        {"type T struct { Next *T; V jsontext.Value }", []string{"p.T.V"}},
		"what is not exported":                {"func f() jsontext.Value; type t struct { V jsontext.Value }; type T struct{ v t }; func (T) m(t)", nil},
		"the standard library's type is fine": {"type T struct { V json.RawMessage }; func f(jsontext.Value)", nil},
	} {
		t.Run(name, func(t *testing.T) {
			source := "package p; import (\"encoding/json\"; \"" + experimental + "/jsontext\"); var _ json.RawMessage; var _ jsontext.Value; " + test.source
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, "p.go", source, 0)
			if err != nil {
				t.Fatal(err)
			}
			checker := types.Config{Importer: imports, Error: func(error) {}} // functions without bodies
			p, err := checker.Check(module+"/p", files, []*ast.File{file}, nil)
			if err != nil && !strings.Contains(err.Error(), "missing function body") {
				t.Fatal(err)
			}
			if got := experimentalTypes(p); !slices.Equal(got, test.want) {
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
}

// exportData asks the go command for the export data of all packages of the main module, and of
// what they import. The second result is the packages that others may import.
func exportData(t *testing.T) (types.Importer, []string) {
	t.Helper()
	command := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Name,Export", module+"/...")
	var problems bytes.Buffer
	command.Stderr = &problems
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, problems.String())
	}
	exports := map[string]string{}
	var public []string
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p struct{ ImportPath, Name, Export string }
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if p.Name != "main" && isPublic(p.ImportPath) {
			public = append(public, p.ImportPath)
		}
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }), public
}

func isPublic(path string) bool {
	if path != module && !strings.HasPrefix(path, module+"/") {
		return false
	}
	folder := ofOurs(path)
	first, _, _ := strings.Cut(folder, "/")
	return !slices.Contains(strings.Split(folder, "/"), "internal") && !slices.Contains([]string{"examples", "test", "tools"}, first) &&
		!strings.HasPrefix(folder, "cmd/test/")
}

// experimentalTypes returns the places of a package's API that name a type of the module: objects,
// exported fields and exported methods, also those of types of ours that they lead to.
func experimentalTypes(p *types.Package) []string {
	s := search{seen: map[types.Object]bool{}}
	for _, name := range p.Scope().Names() {
		if object := p.Scope().Lookup(name); object.Exported() {
			s.object(object)
		}
	}
	slices.Sort(s.found)
	return slices.Compact(s.found)
}

type search struct {
	seen  map[types.Object]bool
	found []string
}

func (s *search) object(object types.Object) {
	if s.seen[object] {
		return
	}
	s.seen[object] = true
	place := object.Pkg().Name() + "." + object.Name()
	declared, isType := object.(*types.TypeName)
	if !isType {
		s.walk(place, object.Type())
		return
	}
	if alias, ok := declared.Type().(*types.Alias); ok {
		s.walk(place, alias.Rhs())
		return
	}
	named := declared.Type().(*types.Named)
	s.parameters(place, named.TypeParams())
	s.walk(place, named.Underlying())
	for method := range named.Methods() {
		if method.Exported() {
			s.walk(place+"."+method.Name(), method.Type())
		}
	}
}

// name follows the name of a type.
func (s *search) name(place string, object *types.TypeName, arguments *types.TypeList) {
	for argument := range arguments.Types() {
		s.walk(place, argument)
	}
	switch p := object.Pkg(); {
	case p == nil: // of the universe
	case p.Path() == experimental || strings.HasPrefix(p.Path(), experimental+"/"):
		s.found = append(s.found, place)
	case p.Path() == module || strings.HasPrefix(p.Path(), module+"/"):
		s.object(object)
	}
}

func (s *search) parameters(place string, list *types.TypeParamList) {
	for parameter := range list.TypeParams() {
		s.walk(place, parameter.Constraint())
	}
}

func (s *search) walk(place string, t types.Type) {
	switch t := t.(type) {
	case *types.Alias:
		s.name(place, t.Obj(), t.TypeArgs())
	case *types.Named:
		s.name(place, t.Origin().Obj(), t.TypeArgs())
	case *types.Map:
		s.walk(place, t.Key())
		s.walk(place, t.Elem())
	case interface{ Elem() types.Type }: // pointer, slice, array and channel
		s.walk(place, t.Elem())
	case *types.Signature:
		s.parameters(place, t.TypeParams())
		for _, tuple := range []*types.Tuple{t.Params(), t.Results()} {
			for v := range tuple.Variables() {
				s.walk(place, v.Type())
			}
		}
	case *types.Struct:
		for field := range t.Fields() {
			switch {
			case field.Embedded():
				s.walk(place, field.Type())
			case field.Exported():
				s.walk(place+"."+field.Name(), field.Type())
			}
		}
	case *types.Interface:
		for method := range t.ExplicitMethods() {
			if method.Exported() {
				s.walk(place+"."+method.Name(), method.Type())
			}
		}
		for embedded := range t.EmbeddedTypes() {
			s.walk(place, embedded)
		}
	case *types.Union:
		for term := range t.Terms() {
			s.walk(place, term.Type())
		}
	}
}
