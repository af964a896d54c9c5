// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"k8s.io/apimachinery/pkg/util/intstr"
)

func workloadRolling() Rule {
	return Rule{
		ID: "workload-rolling", Group: groupWorkload, Severities: []Severity{Warning}, Source: "openchoreo/openchoreo#3743",
		What: "The Deployment rolls with maxUnavailable: 0.",
		Why:  "Otherwise an update removes a replica before its successor is ready: in a measurement, 181 of 788 calls failed.",
		Fix:  "Set strategy.rollingUpdate.maxUnavailable: 0 and maxSurge: 1.",
		check: func(c *checker) {
			for _, w := range c.servers() {
				if w.recreate {
					c.fixing("Set strategy.type: RollingUpdate, with maxUnavailable: 0 and maxSurge: 1.").object(w.Object, Warning, "/spec/strategy", "strategy Recreate leaves the service without endpoints during each update")
					continue
				}
				if w.strategy == nil {
					continue // not a Deployment
				}
				unavailable := intstr.FromString("25%") // the API's default
				if w.strategy.MaxUnavailable != nil {
					unavailable = *w.strategy.MaxUnavailable
				}
				n, err := intstr.GetScaledValueFromIntOrPercent(&unavailable, int(max(w.replicas, 1)), false)
				if err == nil && n == 0 {
					continue
				}
				c.object(w.Object, Warning, "/spec/strategy", "maxUnavailable %s can leave the service without endpoints", unavailable.String())
			}
		},
	}
}
