// SPDX-License-Identifier: Apache-2.0

package lint

import "time"

func workloadDrain() Rule {
	const propagation = 5 * time.Second // until every API server has observed that an endpoint is gone
	return Rule{
		ID: "workload-drain", Group: groupWorkload, Severities: []Severity{Warning}, Source: "kubernetes/kubernetes#127335",
		What: "With a preStop hook or by itself, the server keeps answering for at least 5 s after it is told to stop, and terminationGracePeriodSeconds is longer than that plus the longest timeout of a webhook.",
		Why:  "API servers keep connections to terminating pods open, and send calls on them.",
		Fix:  "Add a preStop sleep; or, if the server drains by itself, say for how long in the annotation lint.sallyport.io/drain of the pod template. Make the grace period longer than that and the timeout.",
		check: func(c *checker) {
			for _, b := range c.oncePerContainer() {
				w := b.workload
				drain, said := b.drain()
				switch {
				case !said:
					c.object(w.Object, Warning, w.path, "%s may stop answering right after SIGTERM", w.name())
				case drain == 0:
					c.skip(w.title(), "for how long the preStop hook waits cannot be read")
				case drain < propagation:
					c.object(w.Object, Warning, w.path, "drain %s of %s is shorter than API servers need to notice, %s", drain, w.name(), propagation)
				}
				grace := int64(30) // the API's default
				if s := w.template.Spec.TerminationGracePeriodSeconds; s != nil {
					grace = *s
				}
				if least := int64(drain.Seconds()) + int64(b.seconds()); grace <= least {
					c.object(w.Object, Warning, w.path+"/terminationGracePeriodSeconds", "terminationGracePeriodSeconds %d is below drain %s plus timeout %d s", grace, drain, b.seconds())
				}
			}
		},
	}
}
