// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/commands"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/fieldcheck"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/author"
)

func newLintCommand() *cobra.Command {
	definitions, _ := fieldcheck.ReadDefinitions(nil) // none are given: it has the project's own
	return commands.Lint(commands.Linter{
		Name: "sallyport", Flags: clusterFlags(), Webhooks: builtinWebhooks(),
		PodDefault: func(o *lint.Object) field.ErrorList { return refusalsOf(definitions, o) },
	})
}

// refusalsOf returns why this version's definition and webhook refuse a PodDefault or ClusterPodDefault,
// one error for each field, without values.
func refusalsOf(definitions *fieldcheck.Definitions, o *lint.Object) field.ErrorList {
	whole := func(err error) *field.Error { return &field.Error{Type: field.ErrorTypeInternal, Detail: err.Error()} }
	var body map[string]any
	if err := utiljson.Unmarshal(o.Raw, &body); err != nil {
		return field.ErrorList{whole(err)}
	}
	errs, err := definitions.Validate(context.Background(), schema.FromAPIVersionAndKind(o.APIVersion, o.Kind), body)
	if err != nil {
		return field.ErrorList{whole(err)}
	}
	var object struct {
		Spec jsontext.Value `json:"spec"`
	}
	err = json.Unmarshal(o.Raw, &object)
	if err == nil {
		var more field.ErrorList
		more, err = author.Refusals(o.Kind == sallyportv1alpha1.ClusterPodDefaultKind, object.Spec)
		errs = append(errs, more...)
	}
	if err != nil && len(errs) == 0 { // otherwise the definition says which field is of a wrong type
		errs = append(errs, whole(errors.New("the spec cannot be read"))) // the error may contain values
	}
	var out field.ErrorList
	for _, err := range errs {
		if !slices.ContainsFunc(out, func(told *field.Error) bool { return told.Field == err.Field }) {
			out = append(out, &field.Error{Type: err.Type, Field: err.Field, Detail: fieldcheck.WithoutValue(err)})
		}
	}
	return out
}
