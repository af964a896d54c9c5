// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/internal/kube/selectors"
)

func overlap() Rule {
	return Rule{
		ID: "overlap", Group: groupMatching, Severities: []Severity{Info}, Source: "practice",
		What: "No other configuration of the same kind has the same rules and selectors that overlap.",
		Why:  "The other one may be a second version of the same product, or a leftover.",
		Fix:  "Delete leftovers; give configurations that belong together selectors that exclude each other.",
		check: func(c *checker) {
			same := map[string][]*webhook{}
			for _, w := range c.webhooks {
				key := w.config.Kind + " " + w.rulesKey()
				for _, other := range same[key] {
					if other.config != w.config && !disjoint(w.NamespaceSelector, other.NamespaceSelector) && !disjoint(w.ObjectSelector, other.ObjectSelector) {
						c.webhook(w, Info, "rules", "rules overlap with %s", other.title())
						break
					}
				}
				same[key] = append(same[key], w)
			}
		},
	}
}

// rulesKey is equal for equal rules in any order.
func (w *webhook) rulesKey() string {
	var keys []string
	for _, rule := range w.Rules {
		rule = *rule.DeepCopy()
		slices.Sort(rule.Operations)
		for _, list := range [][]string{rule.APIGroups, rule.APIVersions, rule.Resources} {
			slices.Sort(list)
		}
		key, err := json.Marshal(rule)
		if err != nil { // plain strings
			continue
		}
		keys = append(keys, string(key))
	}
	slices.Sort(keys)
	key, err := json.Marshal(keys)
	if err != nil {
		return ""
	}
	return string(key)
}

// disjoint reports whether two requirements prove that nothing matches both selectors.
func disjoint(a, b *metav1.LabelSelector) bool { return selectors.Contradicts(selectors.Both(a, b)) }
