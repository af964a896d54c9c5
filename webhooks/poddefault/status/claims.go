// SPDX-License-Identifier: Apache-2.0

package status

import (
	"encoding/json"
	"slices"
	"strconv"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// unclaimed are fields of a spec that add nothing to a pod.
var unclaimed = []string{"selector", "desc", "priority", "conflictPolicy", "mode", "substitute", "allowExclude", "namespaceSelector", "freshness"}

// elementKeys are the names of the members by which an element of a list may be told
// from others, in the order in which they are looked for.
var elementKeys = []string{"mountPath", "devicePath", "name", "ip", "containerPort", "topologyKey", "key"}

// claims are the places of a pod that a spec speaks about: "env/HTTP_PROXY". Two
// objects that share none cannot disagree, so that of many objects only few pairs need
// be compared. What is shared says nothing yet. It is made from the JSON, so that a
// field which is new to the API is a claim too.
func claims(spec *kubeflowv1alpha1.PodDefaultSpec) []string {
	raw, err := json.Marshal(spec)
	if err != nil {
		return nil
	}
	var fields map[string]any
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	var out []string
	for name, value := range fields {
		if slices.Contains(unclaimed, name) {
			continue
		}
		if name == "sidecars" || name == "initContainers" { // a name stands for one container of the pod
			name = "containers"
		}
		switch value := value.(type) {
		case map[string]any:
			for member := range value {
				out = append(out, name+"/"+member)
			}
		case []any:
			for _, element := range value {
				out = append(out, name+"/"+elementKey(element))
			}
		default:
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func elementKey(element any) string {
	object, ok := element.(map[string]any)
	if !ok {
		return ""
	}
	for _, name := range elementKeys {
		switch value := object[name].(type) {
		case string:
			return value
		case float64:
			return strconv.FormatFloat(value, 'f', -1, 64)
		}
	}
	return ""
}
