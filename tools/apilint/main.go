// SPDX-License-Identifier: Apache-2.0

// Command apilint checks API types against Kubernetes' API conventions with Kubernetes' own linter,
// sigs.k8s.io/kube-api-linter. Findings that stay are in exceptions.yaml, each with its reason; one
// that is no longer found fails too.
//
// Usage: apilint EXCEPTIONS.yaml FOLDER PACKAGE ...
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
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
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: apilint EXCEPTIONS.yaml FOLDER PACKAGE ...")
		os.Exit(2)
	}
	exceptions, err := read(os.Args[1])
	if err == nil {
		var found []finding
		if found, err = lint(os.Args[2], os.Args[3:]); err == nil {
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

func lint(folder string, patterns []string) ([]finding, error) {
	var configured config.LintersConfig
	if err := yaml.Unmarshal([]byte(settings), &configured); err != nil {
		return nil, err
	}
	analyzers, err := registry.DefaultRegistry().InitializeLinters(linters, configured)
	if err != nil {
		return nil, err
	}
	loaded, err := packages.Load(&packages.Config{Mode: packages.LoadAllSyntax, Dir: folder}, patterns...)
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
