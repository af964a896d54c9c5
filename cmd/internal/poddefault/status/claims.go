// SPDX-License-Identifier: Apache-2.0

package status

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"unique"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// unclaimed are spec fields that add nothing to a pod.
var unclaimed = []string{"selector", "desc", "priority", "conflictPolicy", "mode", "exclusiveGroup", "substitute", "allowExclude", "namespaceSelector", "freshness"}

// elementKeys are the members that may identify a list element, in order of preference.
var elementKeys = []string{"mountPath", "devicePath", "name", "ip", "containerPort", "topologyKey", "key"}

// A claim is a place of a pod that a spec sets, such as "env/HTTP_PROXY", with a digest
// of the value.
type claim struct {
	place string
	says  uint64
}

// claims returns the claims of a spec in JSON, ordered by place. Objects cannot
// conflict if they share no place or agree on all shared places, so only few pairs of
// many objects need a comparison. Claims come from the JSON, so that new API fields are
// covered too.
func claims(spec []byte) []claim {
	var fields map[string]any
	if json.Unmarshal(spec, &fields) != nil {
		return nil
	}
	said := map[string]uint64{}
	add := func(place string, value any) {
		text, _ := json.Marshal(value) // decoded from JSON
		h := fnv.New64a()
		_, _ = h.Write(text)
		said[place] += h.Sum64() // sum of several values at one place
	}
	for name, value := range fields {
		if slices.Contains(unclaimed, name) {
			continue
		}
		if name == "sidecars" || name == "initContainers" { // a name identifies one container of the pod
			name = "containers"
		}
		switch value := value.(type) {
		case map[string]any:
			for member, of := range value {
				add(name+"/"+member, of)
			}
		case []any:
			for _, element := range value {
				add(name+"/"+elementKey(element), element)
			}
		default:
			add(name, value)
		}
	}
	out := make([]claim, 0, len(said))
	for _, place := range slices.Sorted(maps.Keys(said)) {
		out = append(out, claim{unique.Make(place).Value(), said[place]}) // many objects share it
	}
	return out
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

// A requirement is a label that a selector requires, with its allowed values.
type requirement struct {
	key    string
	values []string
}

// maxRequired limits the requirements, and the values of one, in the quick comparison.
const maxRequired = 16

// required returns a selector's requirements with few listed values.
func required(selector labels.Selector) []requirement {
	if selector == nil {
		return nil
	}
	var out []requirement
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			if values := r.Values(); len(values) <= maxRequired {
				out = append(out, requirement{r.Key(), values.List()})
			}
		}
	}
	return out[:min(len(out), maxRequired)]
}

// apart reports whether two objects require different values of one label, so that no
// pod is selected by both. It is a quick check; the full comparison decides the rest.
func (o *object) apart(other *object) bool {
	for i := range o.required {
		for j := range other.required {
			mine, theirs := &o.required[i], &other.required[j]
			if mine.key == theirs.key && !slices.ContainsFunc(mine.values, func(value string) bool { return slices.Contains(theirs.values, value) }) {
				return true
			}
		}
	}
	return false
}
