// SPDX-License-Identifier: Apache-2.0

// Command crdtrim makes generated CustomResourceDefinitions fit to install:
// small enough for client-side apply, and as lenient as the objects that users
// already have. It rewrites the files it is given, and a second run changes
// nothing.
//
// Usage: go run ./crdtrim FILE.yaml ...
//
// It removes, below spec and status of each version:
//   - descriptions of what is deeper than the first level of Kubernetes' own types:
//     the rest repeats the Kubernetes API documentation and makes up most of the size;
//   - the mark of fields that Kubeflow's API does not have, from kinds of other groups;
//   - list types, except of status (the project's own) and of container ports: the
//     schema users have today knows no others, and would let duplicates through
//     that a list map refuses;
//   - defaults, except of keys of a list map, where the API server requires them:
//     an object says what its author wrote, and "not set" stays "not set".
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// maxSize is the upper limit of one definition as compact JSON, in bytes. The
// last-applied annotation of client-side apply ends at 262,144 bytes.
const maxSize = 200_000

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: crdtrim FILE.yaml ...")
		os.Exit(2)
	}
	for _, file := range os.Args[1:] {
		if err := rewrite(file); err != nil {
			fmt.Fprintf(os.Stderr, "crdtrim: %s: %v\n", file, err)
			os.Exit(1)
		}
	}
}

func rewrite(file string) error {
	in, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	out, err := trim(in)
	if err != nil {
		return err
	}
	return os.WriteFile(file, out, 0o644)
}

// trim returns the definition in YAML with sorted keys.
func trim(in []byte) ([]byte, error) {
	var crd map[string]any
	if err := yaml.Unmarshal(in, &crd); err != nil {
		return nil, err
	}
	if crd["kind"] != "CustomResourceDefinition" {
		return nil, fmt.Errorf("kind is %v, want CustomResourceDefinition", crd["kind"])
	}
	spec, _ := crd["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	if len(versions) == 0 {
		return nil, fmt.Errorf("spec.versions is empty")
	}
	for _, v := range versions {
		version, _ := v.(map[string]any)
		holder, _ := version["schema"].(map[string]any)
		root, ok := holder["openAPIV3Schema"].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("version %v has no openAPIV3Schema", version["name"])
		}
		trimRoot(root)
		if spec["group"] != kubeflow {
			unmark(root)
		}
	}
	compact, err := json.Marshal(crd)
	if err != nil {
		return nil, err
	}
	if len(compact) >= maxSize {
		return nil, fmt.Errorf("%d bytes as compact JSON, must be less than %d", len(compact), maxSize)
	}
	return yaml.Marshal(crd)
}

// kubeflow is the group whose fields that Kubeflow does not have say so, by the mark.
const kubeflow, mark = "kubeflow.org", "(+sallyport)"

// unmark removes the mark from descriptions.
func unmark(schema map[string]any) {
	if text, ok := schema["description"].(string); ok {
		if text, ok = strings.CutSuffix(text, mark); ok {
			schema["description"] = strings.TrimRight(text, " \n")
		}
	}
	for _, property := range properties(schema) {
		unmark(property.(map[string]any))
	}
	if items, ok := schema["items"].(map[string]any); ok {
		unmark(items)
	}
}

func trimRoot(root map[string]any) {
	for name, p := range properties(root) {
		property := p.(map[string]any)
		own := !slices.Contains(metadata, name)
		if !own {
			delete(property, "description")
		}
		levels := 0
		if own {
			levels = describedLevels
		}
		for field, f := range properties(property) {
			below := levels
			if name == "spec" && slices.Contains(ownTypes, field) {
				below = allLevels
			}
			trimSchema(field, f.(map[string]any), below, name == "status")
		}
	}
}

// metadata are the fields of every object, which the API server describes.
var metadata = []string{"apiVersion", "kind", "metadata"}

// describedLevels is how many levels of fields below spec and status keep their descriptions: the
// fields themselves, and the first level of the Kubernetes types that most of them have.
const describedLevels = 2

// allLevels is more levels than any type has.
const allLevels = 100

// ownTypes are the fields of spec whose types are the project's at more levels than that.
var ownTypes = []string{"rollout"}

// trimSchema trims one schema and all below it. Descriptions stay at so many levels of fields, list
// types and defaults stay if typed is set.
func trimSchema(field string, schema map[string]any, described int, typed bool) {
	if described <= 0 {
		delete(schema, "description")
	}
	keys, _ := schema["x-kubernetes-list-map-keys"].([]any)
	if !typed && field != "ports" {
		delete(schema, "x-kubernetes-list-type")
		delete(schema, "x-kubernetes-list-map-keys")
		keys = nil
	}
	for name, p := range properties(schema) {
		property := p.(map[string]any)
		if !typed {
			delete(property, "default")
		}
		trimSchema(name, property, described-1, typed)
	}
	for _, below := range []string{"items", "additionalProperties"} {
		child, ok := schema[below].(map[string]any)
		if !ok {
			continue
		}
		defaults := map[string]any{}
		for _, key := range keys {
			if p, ok := properties(child)[key.(string)].(map[string]any); ok && p["default"] != nil {
				defaults[key.(string)] = p["default"]
			}
		}
		delete(child, "description") // of the type: the field has one
		trimSchema("", child, described, typed)
		for key, value := range defaults {
			properties(child)[key].(map[string]any)["default"] = value
		}
	}
}

func properties(schema map[string]any) map[string]any {
	p, _ := schema["properties"].(map[string]any)
	return p
}
