// SPDX-License-Identifier: Apache-2.0

package policyrules

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

func typeCheck() Rule {
	return Rule{
		ID: "policy-types", Levels: []Level{Warning}, Source: docsVAP + " (type checking)",
		What: "Validations and message expressions use fields that the kinds of the policy's rules have, with their types, for kinds of Kubernetes and of CustomResourceDefinitions that were read. Kubernetes' own type checker decides.",
		Why:  "The API server accepts the policy, warns in its status, and the expression fails for every object.",
		Fix:  "Correct the field: 'kubectl explain' lists them.",
		check: func(c *checker) {
			for _, p := range c.Policies {
				if p.Mutating || len(p.programs().errs) > 0 {
					continue
				}
				for _, warning := range c.checkers.types().check(p) {
					c.find(p.Object, Warning, pointerTo(warning.FieldRef), strings.TrimPrefix(warning.FieldRef, "spec.")+": "+typeProblem(warning.Warning))
				}
			}
		},
	}
}

var index = regexp.MustCompile(`\[(\d+)\]`)

func pointerTo(field string) string {
	return "/" + strings.ReplaceAll(index.ReplaceAllString(field, ".$1"), ".", "/")
}

// typeProblem is the kind and the first problem of a warning.
func typeProblem(warning string) string {
	kind, rest, _ := strings.Cut(strings.TrimSpace(warning), ": ")
	return kind + ": " + compileError(rest[max(0, strings.Index(rest, "ERROR: ")):])
}

// typeChecker is the API server's, with the kinds that are known.
type typeChecker struct {
	checker  *validating.TypeChecker
	policies []*Policy
	warnings map[*Policy][]admissionregistrationv1.ExpressionWarning
}

func newTypeChecker(s *Set) *typeChecker {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, r := range s.Resources {
		scope := meta.RESTScopeRoot
		if r.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		mapper.AddSpecific(r.GroupVersion().WithKind(r.Kind), r.GroupVersionResource, r.GroupVersionResource, scope)
	}
	return &typeChecker{
		checker:  &validating.TypeChecker{RestMapper: mapper, SchemaResolver: &schemas{set: s, known: map[schema.GroupVersionKind]*spec.Schema{}}},
		policies: s.Policies,
	}
}

// check returns the warnings of a policy. The first call checks all policies: those about the same kinds together,
// because the environment of a check takes tens of milliseconds to make, and those with warnings by halves.
func (t *typeChecker) check(p *Policy) []admissionregistrationv1.ExpressionWarning {
	if t.warnings == nil {
		t.warnings = map[*Policy][]admissionregistrationv1.ExpressionWarning{}
		groups, order := map[string][]*Policy{}, []string{}
		for _, p := range t.policies {
			if p.Mutating || len(p.programs().errs) > 0 {
				continue
			}
			key, err := json.Marshal([]any{p.Validating.ParamKind, p.Validating.MatchConstraints})
			if err != nil {
				continue
			}
			if _, ok := groups[string(key)]; !ok {
				order = append(order, string(key))
			}
			groups[string(key)] = append(groups[string(key)], p)
		}
		for _, key := range order {
			for group := range slices.Chunk(groups[key], 25) {
				t.checkAll(group)
			}
		}
	}
	return t.warnings[p]
}

func (t *typeChecker) checkAll(policies []*Policy) {
	if len(policies) == 1 {
		t.warnings[policies[0]] = t.checker.Check(&admissionregistrationv1.ValidatingAdmissionPolicy{Spec: *policies[0].Validating})
		return
	}
	if t.joined(policies) {
		return
	}
	t.checkAll(policies[:len(policies)/2])
	t.checkAll(policies[len(policies)/2:])
}

// joined checks several policies as one, and reports whether there is no warning. Each policy's variables get a
// prefix of their own.
func (t *typeChecker) joined(policies []*Policy) bool {
	spec := admissionregistrationv1.ValidatingAdmissionPolicySpec{ParamKind: policies[0].Validating.ParamKind, MatchConstraints: policies[0].Validating.MatchConstraints}
	var list []string
	for i, p := range policies {
		prefix := fmt.Sprintf("variables.p%d_$1", i)
		for _, v := range p.variables() {
			spec.Variables = append(spec.Variables, admissionregistrationv1.Variable{Name: fmt.Sprintf("p%d_%s", i, v.Name), Expression: variableNames.ReplaceAllString(v.Expression, prefix)})
		}
		for _, e := range p.of(validates, messages) {
			list = append(list, "dyn("+variableNames.ReplaceAllString(e.text, prefix)+"\n)") // it may end with a comment
		}
	}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{Spec: spec}
	return len(t.checker.CheckExpression(t.checker.CreateContext(policy), "["+strings.Join(list, ", ")+"]")) == 0
}

// schemas resolves schemas of Kubernetes' kinds from their Go types, and of others from definitions.
type schemas struct {
	set   *Set
	known map[schema.GroupVersionKind]*spec.Schema
}

// ResolveSchema implements [resolver.SchemaResolver].
func (s *schemas) ResolveSchema(gvk schema.GroupVersionKind) (*spec.Schema, error) {
	if found, ok := s.known[gvk]; ok {
		if found == nil {
			return nil, fmt.Errorf("%s: %w", gvk, resolver.ErrSchemaNotFound)
		}
		return found, nil
	}
	s.known[gvk] = nil
	switch raw := s.set.Schema(gvk); {
	case raw != nil:
		out := &spec.Schema{}
		if err := json.Unmarshal(raw, out); err != nil {
			return nil, fmt.Errorf("the schema of %s: %w", gvk.Kind, err)
		}
		if out.Properties == nil {
			out.Properties = map[string]spec.Schema{}
		}
		out.Properties["apiVersion"], out.Properties["kind"] = *spec.StringProperty(), *spec.StringProperty()
		out.Properties["metadata"] = *ofType(reflect.TypeFor[metav1.ObjectMeta](), nil)
		s.known[gvk] = out
	case scheme.Scheme.Recognizes(gvk):
		object, err := scheme.Scheme.New(gvk)
		if err != nil {
			return nil, err
		}
		s.known[gvk] = ofType(reflect.TypeOf(object).Elem(), nil)
	}
	return s.ResolveSchema(gvk)
}

// special are types whose JSON is not that of their Go fields.
var special = map[reflect.Type]func() *spec.Schema{
	reflect.TypeFor[metav1.Time]():      spec.DateTimeProperty,
	reflect.TypeFor[metav1.MicroTime](): spec.DateTimeProperty,
	reflect.TypeFor[metav1.Duration]():  spec.StringProperty,
	reflect.TypeFor[resource.Quantity](): func() *spec.Schema {
		out := &spec.Schema{}
		out.AddExtension("x-kubernetes-int-or-string", true)
		return out
	},
	reflect.TypeFor[intstr.IntOrString](): func() *spec.Schema {
		out := &spec.Schema{}
		out.AddExtension("x-kubernetes-int-or-string", true)
		return out
	},
	reflect.TypeFor[runtime.RawExtension](): unknownFields,
	reflect.TypeFor[metav1.FieldsV1]():      unknownFields,
}

func unknownFields() *spec.Schema {
	out := &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}}}
	out.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	return out
}

// ofType returns the schema of a Go type of k8s.io/api.
func ofType(t reflect.Type, open []reflect.Type) *spec.Schema {
	if make, ok := special[t]; ok {
		return make()
	}
	for _, outer := range open {
		if outer == t { // such as JSONSchemaProps in itself
			return unknownFields()
		}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return ofType(t.Elem(), open)
	case reflect.String:
		return spec.StringProperty()
	case reflect.Bool:
		return spec.BoolProperty()
	case reflect.Int32, reflect.Int64, reflect.Int, reflect.Int16, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return spec.Int64Property()
	case reflect.Float32, reflect.Float64:
		return spec.Float64Property()
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return spec.StrFmtProperty("byte")
		}
		return spec.ArrayProperty(ofType(t.Elem(), open))
	case reflect.Map:
		return spec.MapProperty(ofType(t.Elem(), open))
	case reflect.Struct:
		out := &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{}}}
		for i := range t.NumField() {
			field := t.Field(i)
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			inner := ofType(field.Type, append(open, t))
			switch {
			case name == "-" || !field.IsExported():
			case name == "" && (field.Anonymous || strings.Contains(options, "inline")):
				for key, value := range inner.Properties {
					out.Properties[key] = value
				}
			default:
				out.Properties[name] = *inner
			}
		}
		return out
	}
	return unknownFields()
}
