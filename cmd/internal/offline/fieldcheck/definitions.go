// SPDX-License-Identifier: Apache-2.0

package fieldcheck

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/kube-openapi/pkg/validation/spec"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/config/crd"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// Definitions are CustomResourceDefinitions: the project's and given ones, which take
// precedence.
type Definitions struct {
	given map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition

	mu    sync.Mutex // guards ready: tests of a suite run side by side
	ready map[schema.GroupVersionKind]*definition
}

// ownDefinitions are the project's definitions.
var ownDefinitions = sync.OnceValues(func() (*Definitions, error) {
	all, err := crd.All()
	out := &Definitions{given: map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition{}, ready: map[schema.GroupVersionKind]*definition{}}
	for _, d := range all {
		out.given[kindOf(d)] = d
	}
	return out, err
})

func kindOf(d *apiextensionsv1.CustomResourceDefinition) schema.GroupKind {
	return schema.GroupKind{Group: d.Spec.Group, Kind: d.Spec.Names.Kind}
}

// IsDefinition reports whether an object is a CustomResourceDefinition.
func IsDefinition(o *manifest.Object) bool {
	return o.Kind == "CustomResourceDefinition" && o.APIVersion == apiextensionsv1.SchemeGroupVersion.String()
}

// ReadDefinitions extracts the definitions from objects.
func ReadDefinitions(objects []*manifest.Object) (*Definitions, error) {
	out := &Definitions{given: map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition{}, ready: map[schema.GroupVersionKind]*definition{}}
	var errs []error
	for _, o := range objects {
		if !IsDefinition(o) {
			continue
		}
		d := &apiextensionsv1.CustomResourceDefinition{}
		if err := o.Decode(d); err != nil {
			errs = append(errs, err)
			continue
		}
		out.given[kindOf(d)] = d
	}
	return out, errors.Join(errs...)
}

// of returns the definition of a kind, or nil. The error concerns the definition, or a
// missing version.
func (d *Definitions) of(gvk schema.GroupVersionKind) (*definition, error) {
	given := d.given[gvk.GroupKind()]
	if given == nil && (gvk.Group == kubeflowv1alpha1.GroupName && gvk.Kind == kubeflowv1alpha1.PodDefaultKind || gvk.Group == sallyportv1alpha1.GroupName) {
		own, err := ownDefinitions()
		if err != nil || own == d {
			return nil, err
		}
		return own.of(gvk)
	}
	if given == nil {
		return nil, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	ready := d.ready[gvk]
	if ready == nil {
		var err error
		if ready, err = prepareDefinition(given, gvk.Version); err != nil {
			return nil, fmt.Errorf("CustomResourceDefinition %s: %w", given.Name, err)
		}
		d.ready[gvk] = ready
	}
	return ready, nil
}

// Knows reports whether there is a definition of a kind in its version.
func (d *Definitions) Knows(gvk schema.GroupVersionKind) bool {
	definition, err := d.of(gvk)
	return err == nil && definition != nil
}

// Default sets the defaults of a custom resource's schema, and removes unknown fields, as the API
// server does. It leaves kinds without a definition alone.
func (d *Definitions) Default(gvk schema.GroupVersionKind, body map[string]any) {
	definition, err := d.of(gvk)
	if err != nil || definition == nil {
		return
	}
	if !definition.preserve {
		pruning.Prune(body, definition.structural, true)
		defaulting.PruneNonNullableNullsWithoutDefaults(body, definition.structural)
	}
	defaulting.Default(body, definition.structural)
}

// MissingField returns the first field of a path that a kind does not have, by its type or schema, with the
// name that was most likely intended, if there is one; empty if all are there, or the kind is not known.
// Indices of lists and keys of maps are tokens of a path too.
func (d *Definitions) MissingField(gvk schema.GroupVersionKind, tokens []string) (missing, like string) {
	into := goType(gvk)
	definition, err := d.of(gvk)
	if into == nil && (err != nil || definition == nil) {
		return "", ""
	}
	for i := range tokens {
		names := []string(nil)
		if into != nil {
			names = fieldsOfType(into, tokens[:i+1])
		} else if names = definition.fields(tokens[:i+1]); i == 0 {
			names = append(names, "apiVersion", "kind", "metadata")
		} else if tokens[0] == "metadata" {
			names = fieldsOfType(&metav1.PartialObjectMetadata{}, tokens[:i+1])
		}
		if len(names) > 0 && !slices.Contains(names, tokens[i]) {
			return tokens[i], closest(tokens[i], names)
		}
	}
	return "", ""
}

// Validate validates a custom resource by its schema and rules, as the API server does; nothing without a
// definition.
func (d *Definitions) Validate(ctx context.Context, gvk schema.GroupVersionKind, body map[string]any) (field.ErrorList, error) {
	definition, err := d.of(gvk)
	if err != nil || definition == nil {
		return nil, err
	}
	raw, err := utiljson.Marshal(body)
	if err != nil {
		return nil, err
	}
	o := &manifest.Object{Raw: raw}
	o.APIVersion, o.Kind = gvk.GroupVersion().String(), gvk.Kind
	_, invalid, err := definition.check(ctx, o)
	return invalid, err
}

// TypeConverter merges custom resources of a kind by its schema, as the API server does; nil without a
// definition.
func (d *Definitions) TypeConverter(gvk schema.GroupVersionKind) (managedfields.TypeConverter, error) {
	definition, err := d.of(gvk)
	if err != nil || definition == nil {
		return nil, err
	}
	model := definition.structural.ToKubeOpenAPI()
	model.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}})
	return managedfields.NewTypeConverter(map[string]*spec.Schema{gvk.String(): model}, true)
}

// A definition is one version of a CustomResourceDefinition, prepared for checks.
type definition struct {
	namespaced bool
	// preserve is set if unknown fields are preserved.
	preserve   bool
	structural *structuralschema.Structural
	schema     crdvalidation.SchemaValidator
	rules      *cel.Validator // nil without x-kubernetes-validations
}

func prepareDefinition(of *apiextensionsv1.CustomResourceDefinition, version string) (*definition, error) {
	i := slices.IndexFunc(of.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version && v.Served })
	if i < 0 {
		return nil, fmt.Errorf("it does not serve the version %s", version)
	}
	out := &definition{namespaced: of.Spec.Scope == apiextensionsv1.NamespaceScoped, preserve: of.Spec.PreserveUnknownFields}
	if of.Spec.Versions[i].Schema == nil || of.Spec.Versions[i].Schema.OpenAPIV3Schema == nil {
		return nil, fmt.Errorf("its version %s has no schema", version)
	}
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(of.Spec.Versions[i].Schema.OpenAPIV3Schema, internal, nil); err != nil {
		return nil, err
	}
	var err error
	if out.structural, err = structuralschema.NewStructural(internal); err != nil {
		return nil, fmt.Errorf("its schema is not structural: %w", err)
	}
	if out.schema, _, err = crdvalidation.NewSchemaValidator(internal); err != nil {
		return nil, err
	}
	out.rules = cel.NewValidator(out.structural, true, celconfig.PerCallLimit)
	return out, nil
}

// check treats an object like the API server on creation: it finds unknown fields, sets
// defaults and validates.
func (d *definition) check(ctx context.Context, o *manifest.Object) (unknown []string, invalid field.ErrorList, err error) {
	var body map[string]any
	if err := utiljson.Unmarshal(o.Raw, &body); err != nil { // preserves integers
		return nil, nil, err
	}
	// In a typed list, items may omit their type.
	body["apiVersion"], body["kind"] = o.APIVersion, o.Kind
	meta, _, unknown, err := objectmeta.GetObjectMetaWithOptions(body, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, nil, err
	}
	if !d.preserve {
		unknown = append(unknown, pruning.PruneWithOptions(body, d.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
		defaulting.PruneNonNullableNullsWithoutDefaults(body, d.structural)
	}
	if problem, paths := objectmeta.CoerceWithOptions(nil, body, d.structural, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true}); problem != nil {
		invalid = append(invalid, problem)
	} else {
		unknown = append(unknown, paths...)
	}
	defaulting.Default(body, d.structural)
	if meta.Namespace == "" && d.namespaced {
		meta.Namespace = "default" // the namespace of the request, not of the file
	}
	invalid = append(invalid, validation.ValidateObjectMeta(meta, d.namespaced, validation.NameIsDNSSubdomain, field.NewPath("metadata"))...)
	invalid = append(invalid, crdvalidation.ValidateCustomResource(nil, body, d.schema)...)
	invalid = append(invalid, objectmeta.Validate(ctx, nil, body, d.structural, false)...)
	invalid = append(invalid, listtype.ValidateListSetsAndMaps(nil, d.structural, body)...)
	if d.rules != nil && !slices.ContainsFunc(invalid, blocksRules) {
		more, _ := d.rules.Validate(ctx, nil, d.structural, body, nil, celconfig.RuntimeCELCostBudget)
		invalid = append(invalid, more...)
	}
	return unknown, invalid, nil
}

// blocksRules reports whether the API server skips rules for objects with such an
// error.
func blocksRules(err *field.Error) bool {
	switch err.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	}
	return false
}

// fields returns the valid names for the last token.
func (d *definition) fields(tokens []string) []string {
	s := d.structural
	for i := 0; i+1 < len(tokens) && s != nil; i++ {
		if next, ok := s.Properties[tokens[i]]; ok {
			s = &next
		} else if s.Items != nil {
			s = s.Items
		} else if s.AdditionalProperties != nil {
			s = s.AdditionalProperties.Structural
		} else {
			s = nil
		}
	}
	if s == nil {
		return nil
	}
	return slices.Collect(maps.Keys(s.Properties))
}

// fieldsOfType does the same for a Go type.
func fieldsOfType(of any, tokens []string) []string {
	t := reflect.TypeOf(of)
	for i := 0; ; i++ {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if i+1 >= len(tokens) {
			break
		}
		switch t.Kind() {
		case reflect.Slice, reflect.Array, reflect.Map:
			t = t.Elem()
		case reflect.Struct:
			next, ok := structFields(t)[tokens[i]]
			if !ok {
				return nil
			}
			t = next
		default:
			return nil
		}
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	return slices.Collect(maps.Keys(structFields(t)))
}

// structFields returns the fields of a struct by JSON name.
func structFields(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name == "" && f.Anonymous && f.Type.Kind() == reflect.Struct:
			maps.Copy(out, structFields(f.Type))
		case name != "":
			out[name] = f.Type
		}
	}
	return out
}
