// SPDX-License-Identifier: Apache-2.0

// Package crd holds the CustomResourceDefinitions of the project as they are
// generated from the API types, so that a program can print or install them
// without the source tree. The YAML files beside it are generated: change the
// types in api/ and run `make generate`.
//
// Experimental: see docs/compatibility.md.
package crd

import (
	"embed"
	"fmt"
	"io/fs"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// Files of definitions are GROUP_PLURAL.yaml; kustomization.yaml is none.
//
//go:embed *_*.yaml
var files embed.FS

// All returns a fresh copy of every definition, sorted by name, each with its
// apiVersion and kind set. An error means that a generated file is damaged.
func All() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	names, err := fs.Glob(files, "*_*.yaml") // sorted; a file name starts with the group
	if err != nil {
		return nil, err
	}
	crds := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(names))
	for _, name := range names {
		data, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, crd); err != nil {
			return nil, fmt.Errorf("%s is damaged, run make generate: %w", name, err)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}
