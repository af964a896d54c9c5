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
//   - list types from the fields that Kubeflow's PodDefault has, except where its definition
//     has them: the schema would refuse objects that users have today;
//   - defaults from Kubernetes' own types, except of keys of a list map, where the API server
//     requires them: an object says what its author wrote, and "not set" stays "not set".
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
		group, _ := spec["group"].(string)
		trimRoot(root, group)
		if group != kubeflow {
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

func trimRoot(root map[string]any, group string) {
	for name, p := range properties(root) {
		property := p.(map[string]any)
		described := !slices.Contains(metadata, name)
		if !described {
			delete(property, "description")
		}
		for field, f := range properties(property) {
			keep := kept{lists: true}
			if described {
				keep.described = describedLevels
			}
			switch {
			case name == "status", name == "spec" && slices.Contains(ownTypes, field):
				keep.described, keep.defaults = allLevels, true
			case name == "spec" && group == kubeflow && slices.Contains(fieldsOfKubeflow, field):
				keep.lists = false
			}
			trimSchema(field, f.(map[string]any), keep)
		}
	}
}

// metadata are the fields of every object, which the API server describes.
var metadata = []string{"apiVersion", "kind", "metadata"}

// fieldsOfKubeflow are the fields of spec that Kubeflow's definition has, and listsOfKubeflow
// the lists in them that have a type there.
var (
	fieldsOfKubeflow = strings.Fields(`annotations args automountServiceAccountToken command desc env envFrom imagePullSecrets initContainers
		labels selector serviceAccountName sidecars tolerations volumeMounts volumes`)
	listsOfKubeflow = []string{"claims", "ports", "resizePolicy"}
)

// describedLevels is how many levels of fields below spec and status keep their descriptions: the
// fields themselves, and the first level of the Kubernetes types that most of them have.
const describedLevels = 2

// allLevels is more levels than any type has.
const allLevels = 100

// ownTypes are the fields of spec whose types are the project's at more levels than that.
var ownTypes = []string{"rollout"}

// kept is what stays in a schema.
type kept struct {
	described int  // levels of fields with descriptions
	lists     bool // types of all lists
	defaults  bool // defaults of fields below
}

func trimSchema(field string, schema map[string]any, keep kept) {
	if keep.described <= 0 {
		delete(schema, "description")
	}
	keys, _ := schema["x-kubernetes-list-map-keys"].([]any)
	if !keep.lists && !slices.Contains(listsOfKubeflow, field) {
		delete(schema, "x-kubernetes-list-type")
		delete(schema, "x-kubernetes-list-map-keys")
		keys = nil
	}
	below := keep
	below.described--
	for name, p := range properties(schema) {
		property := p.(map[string]any)
		if !keep.defaults {
			delete(property, "default")
		}
		trimSchema(name, property, below)
	}
	for _, name := range []string{"items", "additionalProperties"} {
		child, ok := schema[name].(map[string]any)
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
		trimSchema("", child, keep)
		for key, value := range defaults {
			properties(child)[key].(map[string]any)["default"] = value
		}
	}
}

func properties(schema map[string]any) map[string]any {
	p, _ := schema["properties"].(map[string]any)
	return p
}
