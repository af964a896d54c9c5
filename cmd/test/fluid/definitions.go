// SPDX-License-Identifier: Apache-2.0

// Package fluid has what tests and benchmarks need of a Fluid installation.
package fluid

import (
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/kinds"
)

// Definitions are those of the kinds of Fluid's API that the dataset webhook reads, but
// for the kinds in without. They take any fields.
func Definitions(without ...kinds.Kind) []*apiextensionsv1.CustomResourceDefinition {
	var out []*apiextensionsv1.CustomResourceDefinition
	versions := kinds.All()
	for _, kind := range slices.Sorted(maps.Keys(versions)) {
		if versions[kind] == kinds.Group+"/"+kinds.Version && !slices.Contains(without, kind) {
			out = append(out, Definition(kind))
		}
	}
	return out
}

// Definition is that of one kind.
func Definition(kind kinds.Kind) *apiextensionsv1.CustomResourceDefinition {
	singular := strings.ToLower(string(kind))
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: singular + "s." + kinds.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kinds.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: singular + "s", Singular: singular, Kind: string(kind), ListKind: string(kind) + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: kinds.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: new(true),
				}},
			}},
		},
	}
}

// Object is one of Fluid's API, with spec and status.
func Object(kind kinds.Kind, namespace, name string, spec, status map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if spec != nil {
		u.Object["spec"] = spec
	}
	if status != nil {
		u.Object["status"] = status
	}
	u.SetAPIVersion(kinds.Group + "/" + kinds.Version)
	u.SetKind(string(kind))
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// Bound is the status of a Dataset that is bound to a runtime of its name.
func Bound(namespace, name, runtimeType string) map[string]any {
	return map[string]any{"phase": "Bound", "runtimes": []any{map[string]any{"type": runtimeType, "name": name, "namespace": namespace}}}
}

// WorkersIn is the status of a runtime whose workers have to be on nodes with the
// labels, one after the other key and value.
func WorkersIn(labels ...string) map[string]any {
	var expressions []any
	for i := 0; i+1 < len(labels); i += 2 {
		expressions = append(expressions, map[string]any{"key": labels[i], "operator": "In", "values": []any{labels[i+1]}})
	}
	return map[string]any{"cacheAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{
		"nodeSelectorTerms": []any{map[string]any{"matchExpressions": expressions}},
	}}}
}
