// SPDX-License-Identifier: Apache-2.0

package lint

import admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

func sideEffects() Rule {
	return Rule{
		ID: "side-effects", Group: groupIdentity, Severities: []Severity{Error}, Source: fromBoth,
		What: "sideEffects is None or NoneOnDryRun; with NoneOnDryRun, the handler respects dryRun.",
		Why:  "Otherwise dry-run requests fail with 400, or have effects.",
		Fix:  "Set sideEffects: None if the handler writes nothing; or NoneOnDryRun, and write nothing when the request's dryRun is set.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				if w.SideEffects == nil {
					c.webhook(w, Error, "", "sideEffects must be None or NoneOnDryRun, and is missing")
					continue
				}
				switch *w.SideEffects {
				case admissionregistrationv1.SideEffectClassNone:
				case admissionregistrationv1.SideEffectClassNoneOnDryRun:
					c.skip(w.title(), "only its code tells whether the handler looks at dryRun")
				default:
					c.webhook(w, Error, "sideEffects", "sideEffects must be None or NoneOnDryRun, got %q", *w.SideEffects)
				}
			}
		},
	}
}
