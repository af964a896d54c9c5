// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// Defect is a known defect of evaluation.
type Defect struct {
	ID, What, Link string
	// Ranges are the releases that have it.
	Ranges []Range
	// Found reports whether the expression of a JSONPatch meets it. The tree has its macros expanded, and may be nil.
	Found func(ast.Expr) Presence
}

// Range is a minor release up to a patch.
type Range struct{ Minor, Patch int }

// The defects that rules and evaluations ask for. Both were seen on API servers of these releases.
const (
	// ObjectList is a JSONPatch whose value is a list or map with Object literals.
	ObjectList = "object-list"
	// CopiedValue is a JSONPatch whose value is a list or map of the parameter, the namespace or the request.
	CopiedValue = "copied-value"
)

// notFixed is the last patch of a defect that no patch is known to mend.
const notFixed = math.MaxInt

// Defects returns all known defects.
func Defects() []Defect {
	return []Defect{
		{ID: ObjectList, What: "a JSONPatch whose value is a list or map of Object literals crashes the request: the API server panics, and failurePolicy Ignore does not help",
			Link: "kubernetes/kubernetes#139032, #142181, #140557", Ranges: []Range{{34, notFixed}, {35, 7}, {36, 4}}, Found: objectValues},
		{ID: CopiedValue, What: "a JSONPatch whose value is a whole list or map of params, namespaceObject or request fails, as a type that cannot be converted",
			Link: "k8s.io/apiserver v0.37, pkg/cel/common", Ranges: []Range{{37, notFixed}}, Found: copiedValues},
	}
}

// Find returns the defect of an ID.
func Find(id string) Defect {
	all := Defects()
	return all[slices.IndexFunc(all, func(d Defect) bool { return d.ID == id })]
}

// Releases names the releases that have the defect: "1.34, 1.36.0 to 1.36.4".
func (d Defect) Releases() string {
	out := make([]string, len(d.Ranges))
	for i, r := range d.Ranges {
		if out[i] = fmt.Sprintf("1.%d", r.Minor); r.Patch != notFixed {
			out[i] = fmt.Sprintf("1.%d.0 to 1.%d.%d", r.Minor, r.Minor, r.Patch)
		}
	}
	return strings.Join(out, ", ")
}

// In reports whether a release has the defect: Possible for an unknown patch or version.
func (d Defect) In(v Version) Presence {
	i := slices.IndexFunc(d.Ranges, func(r Range) bool { return r.Minor == v.Minor })
	switch {
	case !v.Known():
		return Possible
	case i < 0 || v.Patch > d.Ranges[i].Patch:
		return Absent
	case v.Patch < 0 && d.Ranges[i].Patch != notFixed:
		return Possible
	}
	return Certain
}

// Presence is how certain it is that something is there.
type Presence int

// The presences.
const (
	Absent Presence = iota
	// Possible depends on what the expression is evaluated for.
	Possible
	Certain
)

// objectValues finds Object literals in lists and maps that are values of a JSONPatch. Fields of an Object literal and
// sums of lists are converted in another way, which does not fail.
func objectValues(e ast.Expr) Presence {
	return values(e, Certain, func(value ast.Expr, p Presence) Presence { return objectsIn(value, p, false) })
}

// values returns the largest presence that a function finds in the values of JSONPatches. Reached is how certain it is
// that the expression is evaluated.
func values(e ast.Expr, reached Presence, find func(ast.Expr, Presence) Presence) Presence {
	if e == nil {
		return Absent
	}
	if e.Kind() == ast.StructKind && e.AsStruct().TypeName() == "JSONPatch" {
		out := Absent
		for _, field := range e.AsStruct().Fields() {
			if f := field.AsStructField(); f.Name() == "value" {
				out = max(out, find(f.Value(), reached))
			}
		}
		return out
	}
	out := Absent
	for _, part := range partsOf(e) {
		out = max(out, values(part.Expr, min(reached, part.reached), find))
	}
	return out
}

// part is a part of an expression; Possible if the expression may have a value without it.
type part struct {
	ast.Expr
	reached Presence
}

func partsOf(e ast.Expr) []part {
	var out []part
	add := func(reached Presence, list ...ast.Expr) {
		for _, one := range list {
			out = append(out, part{one, reached})
		}
	}
	switch e.Kind() {
	case ast.ListKind:
		optional := e.AsList().OptionalIndices()
		for i, element := range e.AsList().Elements() {
			if slices.Contains(optional, int32(i)) {
				add(Possible, element)
			} else {
				add(Certain, element)
			}
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			add(Certain, entry.AsMapEntry().Value())
		}
	case ast.CallKind:
		call, reached := e.AsCall(), Possible
		if call.FunctionName() == operators.Add {
			reached = Certain
		}
		if call.IsMemberFunction() {
			add(Possible, call.Target())
		}
		add(reached, call.Args()...)
	case ast.SelectKind:
		add(Possible, e.AsSelect().Operand())
	case ast.ComprehensionKind:
		add(Possible, e.AsComprehension().IterRange(), e.AsComprehension().AccuInit(), e.AsComprehension().LoopStep(), e.AsComprehension().Result())
	}
	return out
}

// objectsIn finds Object literals that are elements of lists and values of maps, at any depth. Loop is set for the step of
// a macro, which adds to its list in place.
func objectsIn(e ast.Expr, reached Presence, loop bool) Presence {
	out, holds := Absent, e.Kind() == ast.ListKind || e.Kind() == ast.MapKind
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Add && !loop || e.Kind() == ast.SelectKind {
		return Absent
	}
	for _, part := range partsOf(e) {
		reached := min(reached, part.reached)
		switch isObject := part.Kind() == ast.StructKind && strings.HasPrefix(part.AsStruct().TypeName(), "Object"); {
		case isObject && holds:
			out = max(out, reached)
		case !isObject:
			out = max(out, objectsIn(part.Expr, reached, loop || e.Kind() == ast.ComprehensionKind))
		}
	}
	return out
}

// collections are the fields of params, namespaceObject and request that are lists or maps. Params have other fields too,
// by their kind.
var collections = map[string][]string{
	"params":          {"metadata", "metadata.labels", "metadata.annotations", "metadata.finalizers", "data", "binaryData", "stringData"},
	"namespaceObject": {"metadata", "metadata.labels", "metadata.annotations", "metadata.finalizers", "spec", "spec.finalizers"},
	"request":         {"userInfo", "userInfo.groups", "userInfo.extra", "options", "kind", "resource"},
}

// copiedValues finds values of a JSONPatch that are copied as a whole.
func copiedValues(e ast.Expr) Presence { return values(e, Certain, copiedIn) }

func copiedIn(e ast.Expr, reached Presence) Presence {
	if root, path := pathOf(e); root != "" {
		if slices.Contains(collections[root], path) {
			return reached
		}
		return Absent
	}
	if e.Kind() != ast.ListKind && e.Kind() != ast.MapKind && (e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operators.Conditional) {
		return Absent
	}
	out := Absent
	for _, part := range partsOf(e) {
		out = max(out, copiedIn(part.Expr, min(reached, part.reached)))
	}
	return out
}

// pathOf returns the variable and the fields that an expression selects; root is empty for any other.
func pathOf(e ast.Expr) (root, path string) {
	switch {
	case e.Kind() == ast.IdentKind:
		return e.AsIdent(), ""
	case e.Kind() == ast.SelectKind && !e.AsSelect().IsTestOnly():
		root, path = pathOf(e.AsSelect().Operand())
		return root, strings.TrimPrefix(path+"."+e.AsSelect().FieldName(), ".")
	}
	return "", ""
}
