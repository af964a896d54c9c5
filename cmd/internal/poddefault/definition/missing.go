// SPDX-License-Identifier: Apache-2.0

// Package definition compares the served definitions of PodDefaults and
// ClusterPodDefaults with those of this version. Kubeflow's manifests bring a definition of
// the same name. Where it is applied over ours, the API server prunes the fields that it
// does not know at the next write of each object, without an error.
package definition

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Missing returns what the served definition lacks of our own: the uppermost fields that
// the API server prunes ("spec.sidecars"), in order, versions that are not served, and the
// status subresource.
func Missing(own, served *apiextensionsv1.CustomResourceDefinition) []string {
	if served.Spec.PreserveUnknownFields {
		return nil
	}
	var out []string
	for _, want := range own.Spec.Versions {
		i := slices.IndexFunc(served.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == want.Name && v.Served })
		if i < 0 {
			out = append(out, "version "+want.Name)
			continue
		}
		have := served.Spec.Versions[i]
		if want.Subresources != nil && want.Subresources.Status != nil && (have.Subresources == nil || have.Subresources.Status == nil) {
			out = append(out, "the status subresource")
		}
		if want.Schema == nil || want.Schema.OpenAPIV3Schema == nil {
			continue
		}
		var schema *apiextensionsv1.JSONSchemaProps
		if have.Schema != nil {
			schema = have.Schema.OpenAPIV3Schema
		}
		out = append(out, pruned("", want.Schema.OpenAPIV3Schema, schema)...)
	}
	return out
}

// metadata are fields of every object, which schemas need not name.
var metadata = []string{"apiVersion", "kind", "metadata"}

// pruned returns the uppermost fields below path that want has and have prunes.
func pruned(path string, want, have *apiextensionsv1.JSONSchemaProps) []string {
	if have != nil && have.XPreserveUnknownFields != nil && *have.XPreserveUnknownFields {
		return nil // the API server keeps what it does not know, here and below unless it is described
	}
	if have == nil {
		have = &apiextensionsv1.JSONSchemaProps{}
	}
	var out []string
	if want.XPreserveUnknownFields != nil && *want.XPreserveUnknownFields {
		out = append(out, strings.TrimPrefix(path+".*", "."))
	}
	for _, name := range slices.Sorted(maps.Keys(want.Properties)) {
		if path == "" && slices.Contains(metadata, name) {
			continue
		}
		property := want.Properties[name]
		at := strings.TrimPrefix(path+"."+name, ".")
		if there, ok := have.Properties[name]; ok {
			out = append(out, pruned(at, &property, &there)...)
		} else if have.AdditionalProperties == nil {
			out = append(out, at)
		}
	}
	if want.Items != nil && want.Items.Schema != nil {
		var items *apiextensionsv1.JSONSchemaProps
		if have.Items != nil {
			items = have.Items.Schema
		}
		out = append(out, pruned(path+"[]", want.Items.Schema, items)...)
	}
	if want.AdditionalProperties != nil && have.AdditionalProperties == nil {
		out = append(out, strings.TrimPrefix(path+".*", "."))
	} else if want.AdditionalProperties != nil && want.AdditionalProperties.Schema != nil && have.AdditionalProperties.Schema != nil {
		out = append(out, pruned(path+".*", want.AdditionalProperties.Schema, have.AdditionalProperties.Schema)...)
	}
	return out
}

// Describe describes what a definition lacks, naming the first fields.
func Describe(name string, missing []string) string {
	const most = 5
	named := missing
	more := ""
	if len(missing) > most {
		named, more = missing[:most], fmt.Sprintf(" and %d more", len(missing)-most)
	}
	return fmt.Sprintf("the served definition %s lacks %s%s, which the API server removes from objects when they are next written", name, strings.Join(named, ", "), more)
}
