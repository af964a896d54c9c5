// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

const (
	excludeAnnotation = "poddefault.admission.kubeflow.org/exclude"
	markPrefix        = "poddefault.admission.kubeflow.org/poddefault-"
	listAnnotation    = "sallyport.io/poddefaults"
	revisions         = "sallyport.io/poddefault-revisions"
)

// injected maps a field of the pod to the field of a PodDefault that fills it,
// and to what a person calls one of its elements.
var injected = map[string]struct{ field, noun string }{
	"metadata.labels":                   {"labels", "label"},
	"metadata.annotations":              {"annotations", "annotation"},
	"spec.volumes":                      {"volumes", "volume"},
	"spec.tolerations":                  {"tolerations", "toleration"},
	"spec.imagePullSecrets":             {"imagePullSecrets", "image pull secret"},
	"spec.initContainers":               {"initContainers", "init container"},
	"spec.containers":                   {"sidecars", "sidecar"},
	"spec.serviceAccountName":           {"serviceAccountName", "service account"},
	"spec.automountServiceAccountToken": {"automountServiceAccountToken", "automount of the service account token"},
	"spec.containers.env":               {"env", "env"},
	"spec.containers.envFrom":           {"envFrom", "envFrom"},
	"spec.containers.volumeMounts":      {"volumeMounts", "mount"},
	"spec.containers.command":           {"command", "command"},
	"spec.containers.args":              {"args", "args"},
}

// sourcesOf says what a value at a path of the pod is to a person, and which
// PodDefaults hold it. Without what, the value is a list or an object whose parts
// have sources of their own.
func (c *comparison) sourcesOf(path string, value any) (what string, sources []string) {
	parent, entry := path, ""
	for _, m := range []string{"metadata.annotations", "metadata.labels"} {
		if rest, ok := strings.CutPrefix(path, m+"."); ok {
			parent, entry = m, rest
		}
	}
	if name, ok := strings.CutPrefix(entry, markPrefix); ok {
		return "mark", c.existing(name)
	}
	switch entry {
	case listAnnotation:
		return "the list of all that were decided on", []string{"Sallyport"}
	case revisions:
		return "the revisions that it got", []string{"Sallyport"}
	}
	kind, known := injected[parent]
	if !known {
		return path, nil
	}
	whole := false // the whole value is one thing
	switch value.(type) {
	case []any:
		whole = kind.field == "command" || kind.field == "args"
		if !whole {
			return "", nil
		}
	case map[string]any:
		if (kind.field == "labels" || kind.field == "annotations") && entry == "" {
			return "", nil
		}
	default:
		whole = entry == ""
	}

	what = kind.noun
	switch {
	case entry != "":
		what += " " + entry
	case whole:
	default:
		what += " " + title(parent, value)
	}
	for _, pd := range c.podDefaults {
		wanted := object(pd["spec"])[kind.field]
		var holds bool
		switch {
		case entry != "":
			holds = reflect.DeepEqual(object(wanted)[entry], value)
		case whole:
			holds = reflect.DeepEqual(wanted, value)
		default:
			for _, element := range list(wanted) {
				holds = holds || mergeKey(parent, element) == mergeKey(parent, value) && within(element, value)
			}
		}
		if holds {
			sources = append(sources, nameOf(pd))
		}
	}
	return what, sources
}

func (c *comparison) existing(name string) []string {
	for _, pd := range c.podDefaults {
		if nameOf(pd) == name {
			return []string{name}
		}
	}
	return nil
}

func nameOf(obj map[string]any) string {
	name, _ := object(obj["metadata"])["name"].(string)
	return name
}

// within tells whether all that is set in part is so in whole, which may have more.
func within(part, whole any) bool {
	switch part := part.(type) {
	case map[string]any:
		whole, ok := whole.(map[string]any)
		for name, value := range part {
			ok = ok && within(value, whole[name])
		}
		return ok
	case []any:
		whole, ok := whole.([]any)
		ok = ok && len(part) == len(whole)
		for i := range part {
			ok = ok && within(part[i], whole[i])
		}
		return ok
	default:
		return reflect.DeepEqual(part, whole)
	}
}

// mergeKeys are the fields that make two elements of a list the same, as in
// k8s.io/api/core/v1. Elements of other lists are the same if they are equal.
var mergeKeys = map[string][]string{
	"containers": {"name"}, "initContainers": {"name"}, "volumes": {"name"}, "env": {"name"},
	"imagePullSecrets": {"name"}, "volumeMounts": {"mountPath"}, "ports": {"containerPort"},
	"tolerations": {"key", "operator", "value", "effect"},
}

func mergeKey(path string, element any) string {
	fields, known := mergeKeys[path[strings.LastIndex(path, ".")+1:]]
	if !known {
		data, _ := json.Marshal(element) // decoded from JSON
		return string(data)
	}
	key := make([]any, len(fields))
	for i, field := range fields {
		key[i] = object(element)[field]
	}
	return fmt.Sprintf("%q", key)
}

func index(path string, elements []any) map[string]any {
	out := make(map[string]any, len(elements))
	for _, element := range elements {
		out[mergeKey(path, element)] = element
	}
	return out
}

// title is how a person would name an element of a list.
func title(path string, element any) string {
	fields := object(element)
	for _, field := range []string{"mountPath", "name", "key"} {
		if field == "mountPath" && !strings.HasSuffix(path, "volumeMounts") {
			continue
		}
		if text, ok := fields[field].(string); ok {
			return text
		}
	}
	for _, ref := range []string{"secretRef", "configMapRef"} {
		if name, ok := object(fields[ref])["name"].(string); ok {
			return name
		}
	}
	return "without a name"
}
