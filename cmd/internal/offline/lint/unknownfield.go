// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"regexp"
	"strings"
)

func unknownField() Rule {
	return Rule{
		ID: "unknown-field", Group: groupObjects, Severities: []Severity{Error}, Source: fromAPI,
		What: "Every field exists in the kind, with this exact name, and occurs once.",
		Why:  "With kubectl, the API server rejects the object. With other clients it drops the field, and the default applies.",
		Fix:  "Correct the name, including its case ('kubectl explain' lists all fields), or remove the field.",
		check: func(c *checker) {
			if c.cluster {
				return // stored objects passed the API server, which may be newer
			}
			for _, o := range c.misspelt {
				for _, problem := range o.problems {
					text := problem.Error()
					pointer := ""
					if field := quoted.FindStringSubmatch(text); field != nil {
						pointer = "/" + strings.NewReplacer(".", "/", "[", "/", "]", "").Replace(field[1])
					}
					c.object(o, Error, pointer, "%s", text)
				}
			}
		},
	}
}

// quoted matches the field path in errors of sigs.k8s.io/json.
var quoted = regexp.MustCompile(`"([^"]*)"`)
