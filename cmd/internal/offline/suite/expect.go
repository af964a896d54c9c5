// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"

	testv1alpha1 "github.com/sallyport-io/sallyport/api/test/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/fieldcheck"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// compare returns the unmet expectations. The error lists files that cannot be read.
func (c *Case) compare(outcomes []*review.Outcome, failOnWarnings bool) (*comparison, error) {
	found := &comparison{expect: &c.Expect}
	var err error
	if found.known, err = c.definitions(); err != nil {
		return nil, err
	}
	covered := false
	for _, out := range outcomes {
		covered = covered || len(out.Calls) > 0
		switch deliberate := c.Namespace != "" || out.Object.Namespace != ""; {
		case out.Elsewhere == "":
		case deliberate: // the case may be about just that
			found.warnings = append(found.warnings, out.Elsewhere)
		default:
			found.problem("%s: say the namespace of the object, or that of the case", out.Elsewhere)
		}
		if out.Denied != nil {
			found.denials = append(found.denials, fmt.Sprintf("%s: %s: %s", out.Object.Title(), out.DeniedBy, out.Denied.Message))
		} else {
			found.objects = append(found.objects, out)
		}
		for _, warning := range out.Warnings {
			found.warnings = append(found.warnings, out.Object.Title()+": "+warning)
		}
	}
	if !covered {
		found.problem("nothing was tested: no webhook of the configuration covers %s", c.titles(outcomes))
	}
	found.verdict()
	found.warned(failOnWarnings)
	for i := range c.Expect.Objects {
		found.object(&c.Expect.Objects[i])
	}
	return found, errors.Join(found.want(), found.patch())
}

// titles names what was reviewed.
func (c *Case) titles(outcomes []*review.Outcome) string {
	var titles []string
	for _, out := range outcomes {
		titles = append(titles, out.Object.Title())
	}
	return cmp.Or(strings.Join(titles, ", "), strings.Join(c.Objects, ", "))
}

// definitions returns the CustomResourceDefinitions of a case.
func (c *Case) definitions() (*fieldcheck.Definitions, error) {
	objects, err := manifest.Read(slices.Concat(c.With, c.Objects), strings.NewReader(""))
	if err != nil {
		return nil, err
	}
	return fieldcheck.ReadDefinitions(objects)
}

type comparison struct {
	known    *fieldcheck.Definitions
	others   []string // warnings that are not expected
	expect   *testv1alpha1.Expectation
	objects  []*review.Outcome // the allowed objects
	denials  []string
	warnings []string
	problems []Problem
}

func (f *comparison) problem(format string, args ...any) {
	f.problems = append(f.problems, Problem{Message: cli.OneLine(fmt.Sprintf(format, args...))})
}

func (f *comparison) verdict() {
	allowed := f.expect.Allowed == nil || *f.expect.Allowed
	switch {
	case allowed && len(f.denials) > 0:
		f.problem("want it allowed; denied: %s", strings.Join(f.denials, "; "))
	case !allowed && len(f.denials) == 0:
		f.problem("want it denied; it was allowed")
	case !allowed && !slices.ContainsFunc(f.denials, func(d string) bool { return strings.Contains(d, f.expect.Message) }):
		f.problem("want a denial with %q; denied: %s", f.expect.Message, strings.Join(f.denials, "; "))
	}
}

func (f *comparison) warned(failOnOthers bool) {
	for _, want := range f.expect.Warnings {
		if !slices.ContainsFunc(f.warnings, func(w string) bool { return strings.Contains(w, want) }) {
			f.problem("want a warning with %q; got %d: %s", want, len(f.warnings), strings.Join(f.warnings, "; "))
		}
	}
	for _, got := range f.warnings {
		if slices.ContainsFunc(f.expect.Warnings, func(want string) bool { return strings.Contains(got, want) }) {
			continue
		}
		f.others = append(f.others, got)
		if failOnOthers {
			f.problem("unexpected warning: %s", got)
		}
	}
}

// object compares parts of an object.
func (f *comparison) object(expect *testv1alpha1.ObjectExpectation) {
	out, err := f.find(expect.Object)
	if err != nil {
		f.problem("%v", err)
		return
	}
	title := out.Object.Title()
	var object any
	if err := utiljson.Unmarshal(out.After, &object); err != nil {
		f.problem("%s: %v", title, err)
		return
	}
	for _, path := range slices.Sorted(maps.Keys(expect.Values)) {
		var want any
		err := utiljson.Unmarshal(expect.Values[path], &want)
		got, errPath := findPath(object, path)
		switch {
		case errors.Join(err, errPath) != nil:
			f.problem("%s: %v", title, errors.Join(err, errPath))
		case len(got) == 0:
			f.problem("%s: %s: want %s; there is nothing", title, path, print(want))
		case len(got) == 1 && !reflect.DeepEqual(got[0], want), len(got) > 1 && !reflect.DeepEqual(any(got), want):
			f.problem("%s: %s: want %s, got %s", title, path, print(want), print(one(got)))
		}
	}
	for _, path := range expect.Absent {
		if missing, like := f.known.MissingField(out.Object.GVK(), fieldsOf(path)); missing != "" {
			if like != "" {
				like = ": did you mean " + like + "?"
			}
			f.problem("%s: absent: %s: %s has no field %s%s", title, path, out.Object.Kind, missing, like)
			continue
		}
		if got, err := findPath(object, path); err != nil {
			f.problem("%s: %v", title, err)
		} else if len(got) > 0 {
			f.problem("%s: %s: want nothing, got %s", title, path, print(one(got)))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(expect.Origins)) {
		if got := origin(out, path); got != expect.Origins[path] {
			f.problem("%s: %s: want it from %s, got it from %s", title, path, expect.Origins[path], cmp.Or(got, "nothing"))
		}
	}
}

// find returns the resulting object with Kind or Kind/name.
func (f *comparison) find(name string) (*review.Outcome, error) {
	var titles []string
	var found []*review.Outcome
	for _, out := range f.objects {
		titles = append(titles, out.Object.Title())
		full := out.Object.Kind + "/" + out.Object.Name
		if name == "" || name == out.Object.Kind || name == full {
			found = append(found, out)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(f.objects) == 0:
		return nil, errors.New("nothing came out to look at")
	case len(found) == 0:
		return nil, fmt.Errorf("no %s in the result, which has: %s", name, strings.Join(titles, ", "))
	}
	return nil, fmt.Errorf("several objects came out: say object: Kind/name: %s", strings.Join(titles, ", "))
}

// origin returns the source of the last change at a path or a parent of it. Without such a
// change, it returns the sources of changes below the path.
func origin(out *review.Outcome, path string) string {
	source, longest := "", -1
	var below []string
	for _, o := range out.Origins() {
		at := manifest.FieldPath(jsontext.Pointer(o.Path))
		switch {
		case contains(at, path) && len(at) >= longest:
			source, longest = o.Source, len(at)
		case contains(path, at) && !slices.Contains(below, o.Source):
			below = append(below, o.Source)
		}
	}
	return cmp.Or(source, strings.Join(below, ", "))
}

// contains reports whether path is other or a parent of it.
func contains(path, other string) bool {
	rest, ok := strings.CutPrefix(other, path)
	return ok && (path == "" || rest == "" || strings.ContainsRune(".[", rune(rest[0])))
}

// parsePath parses kubectl's JSONPath. Braces and the first dot are optional.
func parsePath(path string) (*jsonpath.JSONPath, error) {
	expression := path
	if !strings.HasPrefix(expression, "{") {
		if !strings.HasPrefix(expression, ".") && !strings.HasPrefix(expression, "[") {
			expression = "." + expression
		}
		expression = "{" + expression + "}"
	}
	parsed := jsonpath.New(path).AllowMissingKeys(true)
	if err := parsed.Parse(expression); err != nil {
		return nil, fmt.Errorf("%s: not a JSONPath: %w", path, err)
	}
	return parsed, nil
}

// fieldsOf returns the fields of a JSONPath, up to the first node that is none. Indices and filters of lists
// are one token each.
func fieldsOf(path string) []string {
	expression := strings.TrimSuffix(strings.TrimPrefix(path, "{"), "}")
	if !strings.HasPrefix(expression, ".") && !strings.HasPrefix(expression, "[") {
		expression = "." + expression
	}
	parsed, err := jsonpath.Parse(path, "{"+expression+"}")
	if err != nil || len(parsed.Root.Nodes) != 1 {
		return nil
	}
	list, ok := parsed.Root.Nodes[0].(*jsonpath.ListNode)
	if !ok {
		return nil
	}
	var tokens []string
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *jsonpath.FieldNode:
			if n.Value != "" {
				tokens = append(tokens, n.Value)
			}
		case *jsonpath.ArrayNode, *jsonpath.FilterNode, *jsonpath.WildcardNode:
			tokens = append(tokens, "0")
		default:
			return tokens
		}
	}
	return tokens
}

func findPath(object any, path string) ([]any, error) {
	parsed, err := parsePath(path)
	if err != nil {
		return nil, err
	}
	results, err := parsed.FindResults(object)
	if err != nil {
		if strings.Contains(err.Error(), "array index out of bounds") { // AllowMissingKeys does not cover list elements
			return nil, nil
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var found []any
	for _, values := range results {
		for _, value := range values {
			found = append(found, value.Interface())
		}
	}
	return found, nil
}

func one(values []any) any {
	if len(values) == 1 {
		return values[0]
	}
	return values
}

func print(value any) string {
	text, err := utiljson.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}
