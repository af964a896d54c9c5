// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/selection"
)

// maxNarrowKeys is how many label keys a condition may name. With more of them it tells
// little, and costs every pod.
const maxNarrowKeys = 32

// NarrowCondition is the name of the match condition of [Narrowing].
const NarrowCondition = "has-a-label-that-is-selected-by"

// RequiredKeys are label keys of which a pod must have one to be selected by any object,
// sorted; no keys if there is no object. It is false if pods without labels may be
// selected, or there are too many keys. Labels that objects add need no key: they are
// added to a pod that was selected before.
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

// requiredKey is the first key by name that a pod must have; empty if there is none.
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

// RequiredKeys is that of the index. Before everything was read it is false.
func (w *Watcher) RequiredKeys() (keys []string, ok bool) {
	if w.Ready() != nil {
		return nil, false
	}
	return w.index.RequiredKeys()
}

// Narrowing is the condition under which a pod is sent, given [Index.RequiredKeys].
func Narrowing(keys []string) admissionregistrationv1.MatchCondition {
	expression := "false"
	if len(keys) > 0 {
		// Keys hold no quotes: they were validated.
		expression = "has(object.metadata.labels) && ['" + strings.Join(keys, "', '") + "'].exists(k, k in object.metadata.labels)"
	}
	return admissionregistrationv1.MatchCondition{Name: NarrowCondition, Expression: expression}
}
