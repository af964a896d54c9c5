// SPDX-License-Identifier: Apache-2.0

// Command apilint checks API types against Kubernetes' API conventions with Kubernetes' own linter,
// sigs.k8s.io/kube-api-linter. Findings that stay are in exceptions.yaml, each with its reason; one
// that is no longer found fails too.
//
// Usage: apilint [-types PACKAGE.TYPE,...] EXCEPTIONS.yaml FOLDER PACKAGE ...
//
// With -types, it checks these types and those of their fields, and no others of the packages: those of
// a file, which no server stores, so that rules about stored objects do not apply.
package main

import (
	"errors"
	"flag"
	"fmt"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"
	"sigs.k8s.io/kube-api-linter/pkg/analysis/registry"
	"sigs.k8s.io/kube-api-linter/pkg/config"
	_ "sigs.k8s.io/kube-api-linter/pkg/registration" // the linters
	"sigs.k8s.io/yaml"
)

// linters are those that Kubernetes enables for its own APIs, and those of its conventions that a
// CustomResourceDefinition can follow. Left out are: optionalfields, requiredfields and
// nonpointerstructs, which ask for pointers where the zero value and absence mean the same here, as
// in most of Kubernetes' types; nobools and maxlength, which Kubernetes leaves out too; defaults,
// whose marker controller-gen's schemas lack; arrayofstruct, since a step without fields includes all.
var linters = config.Linters{
	Disable: []string{config.Wildcard},
	Enable: []string{
		"conditions", "conflictingmarkers", "duplicatemarkers", "ssatags", // of kubernetes/hack/kube-api-linter
		"commentstart", "integers", "jsontags", "nodurations", "nofloats", "nomaps", "nonullable", "nophase", "notimestamp",
		"optionalorrequired", "statussubresource", "uniquemarkers",
	},
}

// ofStored are linters about objects that the API server stores. Nobody merges the lists of a file,
// and no generator reads from markers which of its fields are optional.
var ofStored = []string{"conditions", "optionalorrequired", "ssatags", "statussubresource"}

// settings are Kubernetes' own, without what only generated protocol buffers and strategic merge
// patches need.
const settings = `
conditions: {isFirstField: Ignore, usePatchStrategy: Ignore, useProtobuf: Ignore}
conflictingmarkers:
  conflicts:
  - name: optional_or_required
    description: a field is optional or required
    sets: [[optional, "kubebuilder:validation:Optional"], [required, "kubebuilder:validation:Required"]]
  - name: default_is_optional
    description: a field with a default is optional
    sets: [["kubebuilder:default"], [required, "kubebuilder:validation:Required"]]
nomaps: {policy: AllowStringToStringMaps}
ssatags: {listTypeSetUsage: Ignore}
`

func main() {
	of := flag.String("types", "", "the types of a file: PACKAGE.TYPE, ...")
	flag.Parse()
	if flag.NArg() < 3 {
		fmt.Fprintln(os.Stderr, "usage: apilint [-types PACKAGE.TYPE,...] EXCEPTIONS.yaml FOLDER PACKAGE ...")
		os.Exit(2)
	}
	exceptions, err := read(flag.Arg(0))
	if err == nil {
		var found []finding
		var roots []string
		if *of != "" {
			roots = strings.Split(*of, ",")
		}
		if found, err = lint(flag.Arg(1), flag.Args()[2:], roots); err == nil {
			err = compare(found, exceptions)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A finding is what a rule says about a field.
type finding struct{ at, rule, text string }

// lint checks packages: all their types, or those that are reached from roots.
func lint(folder string, patterns, roots []string) ([]finding, error) {
	var configured config.LintersConfig
	if err := yaml.Unmarshal([]byte(settings), &configured); err != nil {
		return nil, err
	}
	linters := linters
	if len(roots) > 0 {
		linters.Enable = slices.DeleteFunc(slices.Clone(linters.Enable), func(name string) bool { return slices.Contains(ofStored, name) })
	}
	analyzers, err := registry.DefaultRegistry().InitializeLinters(linters, configured)
	if err != nil {
		return nil, err
	}
	loaded, err := packages.Load(&packages.Config{Mode: packages.LoadAllSyntax, Dir: folder}, patterns...)
	if err != nil {
		return nil, err
	}
	reached, err := structs(loaded, roots)
	if err != nil {
		return nil, err
	}
	graph, err := checker.Analyze(analyzers, loaded, nil)
	if err != nil {
		return nil, err
	}
	var out []finding
	var errs []error
	for action := range graph.All() {
		if action.Err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", action, action.Err))
		}
		for _, d := range action.Diagnostics {
			if len(roots) > 0 && !slices.ContainsFunc(reached, func(t *types.Named) bool { return within(t, d.Pos, action.Package.Fset) }) {
				continue
			}
			at := action.Package.Fset.Position(d.Pos)
			if file, err := filepath.Rel(folder, at.Filename); err == nil {
				at.Filename = file
			}
			out = append(out, finding{fmt.Sprintf("%s:%d", at.Filename, at.Line), action.Analyzer.Name, d.Message})
		}
	}
	slices.SortFunc(out, func(a, b finding) int { return strings.Compare(a.at+a.rule+a.text, b.at+b.rule+b.text) })
	return slices.Compact(out), errors.Join(errs...)
}

// structs returns the types with these names, and those of their fields, in the same packages.
func structs(loaded []*packages.Package, roots []string) ([]*types.Named, error) {
	byPath := map[string]*packages.Package{}
	for _, p := range loaded {
		byPath[p.PkgPath] = p
	}
	var out []*types.Named
	var visit func(types.Type)
	visit = func(t types.Type) {
		switch t := types.Unalias(t).(type) {
		case *types.Pointer:
			visit(t.Elem())
		case *types.Slice:
			visit(t.Elem())
		case *types.Map:
			visit(t.Elem())
		case *types.Named:
			s, ok := t.Underlying().(*types.Struct)
			if !ok || t.Obj().Pkg() == nil || byPath[t.Obj().Pkg().Path()] == nil || slices.Contains(out, t) {
				return
			}
			out = append(out, t)
			for i := range s.NumFields() {
				if tag := reflect.StructTag(s.Tag(i)).Get("json"); s.Field(i).Embedded() || tag != "" && tag != "-" {
					visit(s.Field(i).Type())
				}
			}
		}
	}
	for _, root := range roots {
		at := strings.LastIndex(root, ".")
		p := byPath[root[:max(at, 0)]]
		if p == nil || p.Types.Scope().Lookup(root[at+1:]) == nil {
			return nil, fmt.Errorf("there is no type %s in the packages", root)
		}
		visit(p.Types.Scope().Lookup(root[at+1:]).Type())
	}
	return out, nil
}

// within reports whether a position is in the definition of a struct.
func within(t *types.Named, at token.Pos, files *token.FileSet) bool {
	s := t.Underlying().(*types.Struct)
	if s.NumFields() == 0 || at < t.Obj().Pos() {
		return false
	}
	here, last := files.Position(at), files.Position(s.Field(s.NumFields()-1).Pos())
	return here.Filename == last.Filename && here.Line <= last.Line
}

// An exception is what stays, and why. Field is the beginning of a text: "field PodDefaultSpec.Env".
type exception struct {
	Rule   string   `json:"rule"`
	Reason string   `json:"reason"`
	Fields []string `json:"fields"`
}

func read(file string) (map[string]string, error) {
	var list []exception
	data, err := os.ReadFile(file)
	if err == nil {
		err = yaml.UnmarshalStrict(data, &list)
	}
	out := map[string]string{}
	for _, e := range list {
		if e.Rule == "" || e.Reason == "" {
			err = errors.Join(err, fmt.Errorf("%s: an exception without rule or reason: %+v", file, e))
		}
		for _, field := range e.Fields {
			out[e.Rule+": field "+field+" "] = e.Reason
		}
	}
	return out, err
}

func compare(found []finding, exceptions map[string]string) error {
	var errs []error
	used := map[string]bool{}
	for _, f := range found {
		text := f.rule + ": " + f.text
		known := ""
		for prefix := range exceptions {
			if strings.HasPrefix(text, prefix) {
				known = prefix
			}
		}
		if used[known] = true; known == "" {
			errs = append(errs, fmt.Errorf("%s: %s", f.at, text))
		}
	}
	for _, each := range slices.Sorted(maps.Keys(exceptions)) {
		if !used[each] {
			errs = append(errs, fmt.Errorf("no longer found, remove the exception: %s", each))
		}
	}
	return errors.Join(errs...)
}
