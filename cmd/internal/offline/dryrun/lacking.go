// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Lacking returns the places, without values, where a pod lacks something that is in a
// foreseen pod and was not in the pod that was sent. Other webhooks and the API server may
// add to it.
func Lacking(sent, foreseen []byte, got *corev1.Pod) ([]string, error) {
	before, err := canonical(sent)
	if err != nil {
		return nil, err
	}
	want, err := canonical(foreseen)
	if err != nil {
		return nil, err
	}
	have, err := tree(got)
	if err != nil {
		return nil, err
	}
	changedBy := map[string]bool{} // what is different in the pod as sent is not about injection
	for _, place := range differences("", before, have) {
		changedBy[place] = true
	}
	return slices.DeleteFunc(differences("", want, have), func(place string) bool { return changedBy[place] }), nil
}

// canonical returns a pod as the API server would encode it.
func canonical(raw []byte) (any, error) {
	var pod corev1.Pod
	if err := json.Unmarshal(raw, &pod); err != nil {
		return nil, err
	}
	return tree(&pod)
}

// tree returns the labels and the spec of a pod. Annotations have marks, which are compared
// by their revision.
func tree(pod *corev1.Pod) (any, error) {
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": pod.Labels}, "spec": &pod.Spec})
	if err != nil {
		return nil, err
	}
	var out any
	err = json.Unmarshal(raw, &out)
	return out, err
}

// differences returns the places of want that are not in have.
func differences(at string, want, have any) []string {
	switch want := want.(type) {
	case map[string]any:
		have, ok := have.(map[string]any)
		if !ok {
			if len(want) == 0 {
				return nil
			}
			return []string{at}
		}
		var out []string
		for _, key := range slices.Sorted(maps.Keys(want)) {
			place := key
			if at != "" {
				place = at + "." + key
			}
			out = append(out, differences(place, want[key], have[key])...)
		}
		return out
	case []any:
		have, _ := have.([]any)
		var out []string
		for i, element := range want {
			out = append(out, elementOf(at, i, element, have)...)
		}
		return out
	default:
		if want == nil || reflect.DeepEqual(want, have) {
			return nil
		}
		return []string{at}
	}
}

// elementOf returns the differences of an element of a list: from the one with its name, or
// from all.
func elementOf(at string, i int, want any, have []any) []string {
	name, _ := keyOf(want)
	place := fmt.Sprintf("%s[%d]", at, i)
	if name != "" {
		place = at + "[" + name + "]"
	}
	for _, other := range have {
		if otherName, _ := keyOf(other); name != "" && otherName != name {
			continue
		}
		if found := differences(place, want, other); len(found) == 0 {
			return nil
		} else if name != "" {
			return found
		}
	}
	return []string{place}
}

// keyOf returns what identifies an element of a pod's lists.
func keyOf(element any) (string, bool) {
	object, ok := element.(map[string]any)
	if !ok {
		return "", false
	}
	for _, key := range []string{"mountPath", "devicePath", "name"} {
		if value, ok := object[key].(string); ok {
			return value, true
		}
	}
	return "", false
}
