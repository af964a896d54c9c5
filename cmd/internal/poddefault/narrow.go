// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/selection"
)

// maxNarrowKeys limits the label keys in a match condition. A condition with more keys
// excludes few pods and costs time for each.
const maxNarrowKeys = 32

// NarrowCondition is the name of the match condition from [Narrowing].
const NarrowCondition = "has-a-label-that-is-selected-by"

// RequiredKeys returns label keys, sorted, of which a pod must have at least one for
// any object to select it. Without objects there are no keys. It reports false if pods
// without labels may be selected or there are too many keys. Labels that objects add do
// not matter: only a pod that is already selected gets them.
func (x *Index) RequiredKeys() (keys []string, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	found := map[string]bool{}
	for _, ns := range x.namespaces {
		for _, f := range ns.objects {
			if f.selector == nil { // it selects nothing
				continue
			}
			key := requiredKey(f.Compiled)
			if key == "" {
				return nil, false
			}
			if found[key] = true; len(found) > maxNarrowKeys {
				return nil, false
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), true
}

// requiredKey returns the first key by name that a pod must have, or "".
func requiredKey(c *Compiled) string {
	requirements, _ := c.selector.Requirements()
	first := ""
	for _, r := range requirements {
		switch r.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals, selection.Exists:
			if first == "" || r.Key() < first {
				first = r.Key()
			}
		}
	}
	return first
}

// RequiredKeys is [Index.RequiredKeys]. It reports false until all objects are read.
func (w *Watcher) RequiredKeys() (keys []string, ok bool) {
	if w.Ready() != nil {
		return nil, false
	}
	return w.index.RequiredKeys()
}

// Narrowing returns the match condition for the keys of [Index.RequiredKeys].
func Narrowing(keys []string) admissionregistrationv1.MatchCondition {
	expression := "false"
	if len(keys) > 0 {
		// Keys contain no quotes: they are validated.
		expression = "has(object.metadata.labels) && ['" + strings.Join(keys, "', '") + "'].exists(k, k in object.metadata.labels)"
	}
	return admissionregistrationv1.MatchCondition{Name: NarrowCondition, Expression: expression}
}
