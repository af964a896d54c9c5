// SPDX-License-Identifier: Apache-2.0

package lint

import "fmt"

func consolidate() Rule {
	const many = 3
	return Rule{
		ID: "consolidate", Group: groupDesign, Severities: []Severity{Info}, Source: fromGP,
		What: "Not many entries of a configuration have the same rules and the same server.",
		Why:  "Each entry is a call.",
		Fix:  "Do the work of all entries in one handler.",
		check: func(c *checker) {
			for _, config := range c.configurations {
				count, first := map[string]int{}, map[string]*webhook{}
				for _, w := range config.webhooks {
					key := w.callKey()
					if count[key]++; count[key] == 1 {
						first[key] = w
					}
				}
				for _, w := range config.webhooks {
					if key := w.callKey(); first[key] == w && count[key] >= many {
						c.webhook(w, Info, "", "%d webhooks share rules and service; one call would do", count[key])
					}
				}
			}
		},
	}
}

// callKey is equal for webhooks of the same server that are called for the same
// objects.
func (w *webhook) callKey() string {
	server, _ := endpoint(w.ClientConfig)
	return fmt.Sprint(server, " ", w.rulesKey(), w.NamespaceSelector.String(), w.ObjectSelector.String())
}
