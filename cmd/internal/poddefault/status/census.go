// SPDX-License-Identifier: Apache-2.0

package status

import (
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// A census counts pods or workloads by namespace.
type census map[string]poll

type poll struct{ failed, all int }

func (c census) add(namespace string, failed bool) {
	p := c[namespace]
	p.all++
	if failed {
		p.failed++
	}
	c[namespace] = p
}

func (c census) total() (failed, all int) {
	for _, p := range c {
		failed, all = failed+p.failed, all+p.all
	}
	return failed, all
}

// tooMany reports whether more fail than the rollout tolerates. Of a rollout that reaches
// several namespaces, a single one does not decide: whoever owns it could let its pods fail.
// Each namespace counts at most as many failures as are tolerated, or one if none is, and
// those of one namespace alone are never too many.
func (c census) tooMany(spec *kubeflowv1alpha1.Rollout) bool {
	failed, all := c.total()
	if len(c) < 2 {
		return tooMany(failed, all, spec)
	}
	most := max(1, int(maxFailedPercent(spec))*all/100)
	counted, namespaces := 0, 0
	for _, p := range c {
		if p.failed > 0 {
			namespaces++
			counted += min(p.failed, most)
		}
	}
	return namespaces > 1 && tooMany(counted, all, spec)
}

// tooMany reports whether a part is more than the rollout tolerates.
func tooMany(failed, all int, spec *kubeflowv1alpha1.Rollout) bool {
	return failed*100 > int(maxFailedPercent(spec))*all
}

func maxFailedPercent(spec *kubeflowv1alpha1.Rollout) int32 {
	if spec.MaxFailedPercent != nil {
		return *spec.MaxFailedPercent
	}
	return defaultMaxFailedPercent
}
