// SPDX-License-Identifier: Apache-2.0

package status

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// unclaimed are fields of a spec that add nothing to a pod.
var unclaimed = []string{"selector", "desc", "priority", "conflictPolicy", "mode", "exclusiveGroup", "substitute", "allowExclude", "namespaceSelector", "freshness"}

// elementKeys are the names of the members by which an element of a list may be told
// from others, in the order in which they are looked for.
var elementKeys = []string{"mountPath", "devicePath", "name", "ip", "containerPort", "topologyKey", "key"}

// A claim is a place of a pod that a spec speaks about, "env/HTTP_PROXY", and a digest of
// what it says.
type claim struct {
	place string
	says  uint64
}

// claims are those of a spec, which is JSON, in the order of their places. Two objects
// cannot disagree if they share no place, or say the same at all that they share, so that
// of many objects only few pairs need be compared. They are made from the JSON, so that a
// field which is new to the API is a claim too.
func claims(spec []byte) []claim {
	var fields map[string]any
	if json.Unmarshal(spec, &fields) != nil {
		return nil
	}
	said := map[string]uint64{}
	add := func(place string, value any) {
		text, _ := json.Marshal(value) // it came from JSON
		h := fnv.New64a()
		_, _ = h.Write(text)
		said[place] += h.Sum64() // of several at one place
	}
	for name, value := range fields {
		if slices.Contains(unclaimed, name) {
			continue
		}
		if name == "sidecars" || name == "initContainers" { // a name stands for one container of the pod
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
		out = append(out, claim{place, said[place]})
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

// A requirement is a label that a selector asks for, and which values it may have.
type requirement struct {
	key    string
	values []string
}

// mostRequired are the requirements, and the values of one, that are compared at first.
const mostRequired = 16

// required are those of a selector that name values, and few.
func required(selector labels.Selector) []requirement {
	if selector == nil {
		return nil
	}
	var out []requirement
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			if values := r.Values(); len(values) <= mostRequired {
				out = append(out, requirement{r.Key(), values.List()})
			}
		}
	}
	return out[:min(len(out), mostRequired)]
}

// apart tells whether two objects want different values of one label, so that no pod is
// selected by both. It is what is found out fast; the rest is for those who know more.
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
