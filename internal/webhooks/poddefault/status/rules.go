// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/internal/webhooks/poddefault"
)

// webhookRules are those by which PodDefaults are injected.
func webhookRules() rules {
	return rules{
		check: func(o *object) (mistakes, warnings []string) {
			if problem := o.compiled.Problem(); problem != nil {
				mistakes = strings.Split(problem.Error(), "\n")
			}
			_, warnings = poddefault.Check(o.spec, field.NewPath("spec"))
			return mistakes, warnings
		},
		overlap: func(a, b *object) []string { return poddefault.OverlapOfCompiled(a.compiled, b.compiled) },
	}
}
