// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"

	"github.com/sallyport-io/sallyport/internal/wire/reviewversion"
)

func reviewVersions() Rule {
	return Rule{
		ID: "review-versions", Group: groupIdentity, Severities: []Severity{Error, Warning}, Source: fromAPI,
		What: "admissionReviewVersions contains v1 and names no version twice.",
		Why:  "The API server uses the first entry that it knows. v1beta1 skips the checks of UID and kind, so a wrong answer is accepted.",
		Fix:  "Set admissionReviewVersions: [v1], and serve it.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				list := "[" + strings.Join(w.AdmissionReviewVersions, " ") + "]"
				known := slices.DeleteFunc(slices.Clone(w.AdmissionReviewVersions), func(v string) bool { return !reviewversion.Known(v) })
				switch {
				case len(known) == 0:
					c.webhook(w, Error, "admissionReviewVersions", "admissionReviewVersions %s has no version that the API server knows", list)
				case !slices.Contains(known, reviewversion.V1):
					c.webhook(w, Warning, "admissionReviewVersions", "admissionReviewVersions %s does not contain v1", list)
				}
				if len(slices.Compact(slices.Sorted(slices.Values(w.AdmissionReviewVersions)))) < len(w.AdmissionReviewVersions) {
					c.fixing("Name each version once.").webhook(w, Error, "admissionReviewVersions", "admissionReviewVersions %s names a version twice", list)
				}
			}
		},
	}
}
