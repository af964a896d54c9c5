// SPDX-License-Identifier: Apache-2.0

package lint

import "regexp"

// sorting matches names that seem chosen for their alphabetical order.
var sorting = regexp.MustCompile(`^(0+|a{2,}|z{2,}|_|[0-9]+)[-.]|^(aaa|zzz|000)`)

func order() Rule {
	return Rule{
		ID: "order", Group: groupMatching, Severities: []Severity{Info}, Source: fromGP,
		What: "The name of a configuration does not look chosen to sort first or last.",
		Why:  "The order by name is not a contract, and another name may sort before yours.",
		Fix:  "Make handlers idempotent and independent of the order, with reinvocationPolicy IfNeeded.",
		check: func(c *checker) {
			for _, config := range c.configurations {
				if sorting.MatchString(config.Name) {
					c.object(config.Object, Info, "/metadata/name", "do not rely on the alphabetical order of configurations")
				}
			}
		},
	}
}
