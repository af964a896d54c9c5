// SPDX-License-Identifier: Apache-2.0

// Package references finds what a PodDefault brings to pods by its name.
package references

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/internal/kube/workload"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// The kinds of what PodDefaults bring to pods.
const (
	Secret         = "Secret"
	ConfigMap      = "ConfigMap"
	Image          = "Image"
	ServiceAccount = "ServiceAccount"
	Volume         = "Volume"
)

// Kinds are all of them.
var Kinds = []string{Secret, ConfigMap, Image, ServiceAccount, Volume}

// In returns the places in the spec of a PodDefault that refer to something of a kind
// whose name contains text.
func In(raw jsontext.Value, kind, text string) []string {
	var body struct {
		Spec any `json:"spec"`
	}
	if json.Unmarshal(raw, &body) != nil {
		return nil
	}
	var places []string
	var walk func(value any, tokens []string)
	walk = func(value any, tokens []string) {
		if name, ok := value.(string); ok && strings.Contains(name, text) && kindAt(tokens) == kind {
			places = append(places, fmt.Sprintf("%s: %s", workload.Place(raw, jsonpatch.Pointer(tokens...)), name))
		}
		switch value := value.(type) {
		case []any:
			for i, element := range value {
				walk(element, append(slices.Clip(tokens), fmt.Sprint(i)))
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(value)) {
				walk(value[name], append(slices.Clip(tokens), name))
			}
		}
	}
	walk(body.Spec, []string{"spec"})
	return places
}

// kindAt returns what the text at a place in the spec of a PodDefault names, or "". The fields are
// those of k8s.io/api/core/v1.
func kindAt(tokens []string) string {
	field, parent, list := tokens[len(tokens)-1], "", ""
	if len(tokens) > 2 {
		parent, list = tokens[len(tokens)-2], tokens[len(tokens)-3]
	}
	switch {
	case slices.Contains([]string{"labels", "annotations", "nodeSelector", "matchLabels", "options"}, parent):
		return "" // the names of members are the author's
	case field == "secretName",
		field == "name" && (strings.HasSuffix(parent, "ecretRef") || parent == "secretKeyRef" || parent == "secret" || list == "imagePullSecrets"):
		return Secret
	case field == "name" && (parent == "configMap" || parent == "configMapRef" || parent == "configMapKeyRef"):
		return ConfigMap
	case field == "image", field == "reference" && parent == "image":
		return Image
	case field == "serviceAccountName":
		return ServiceAccount
	case field == "name" && list == "volumes", field == "claimName":
		return Volume
	}
	return ""
}
