// SPDX-License-Identifier: Apache-2.0

package lint

func timeout() Rule {
	const advised = 5
	return Rule{
		ID: "timeout", Group: groupTime, Severities: []Severity{Error, Warning}, Source: fromBoth,
		What: "timeoutSeconds is set, from 1 to 30, and at most 5.",
		Why:  "While the server is down, every matching request waits that long, one mutating webhook after the other.",
		Fix:  "Set timeoutSeconds to 5 or less.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				switch n := w.TimeoutSeconds; {
				case n == nil:
					c.webhook(w, Warning, "", "timeoutSeconds is unset; the default is 10 s")
				case *n < 1 || *n > 30:
					c.webhook(w, Error, "timeoutSeconds", "timeoutSeconds %d is outside 1-30", *n)
				case *n > advised:
					c.webhook(w, Warning, "timeoutSeconds", "timeoutSeconds %d is long; %d s or less is advised", *n, advised)
				}
			}
		},
	}
}
