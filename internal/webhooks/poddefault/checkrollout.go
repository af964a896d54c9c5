// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// Limits of the schema.
const (
	mostSteps       = 20
	mostHoldSeconds = 365 * 24 * 3600
)

// rollout checks what the schema of the definition does too, for objects in files, and
// what it does not. An object with such an error is not left out: its rollout does not
// decide what it means for pods.
func (c *checker) rollout(path *field.Path) {
	if limit := c.spec.RevisionHistoryLimit; limit != nil && *limit < 0 {
		c.invalid(path.Child("revisionHistoryLimit"), *limit, "must be at least 0")
	}
	r := c.spec.Rollout
	if r == nil {
		return
	}
	path = path.Child("rollout")
	at := path.Child("steps")
	switch {
	case len(r.Steps) == 0:
		c.required(at, "a rollout has at least one step")
	case len(r.Steps) > mostSteps:
		c.errs = append(c.errs, field.TooMany(at, len(r.Steps), mostSteps))
		return
	}
	percentOf := func(at *field.Path, percent *int32) {
		if percent != nil && (*percent < 0 || *percent > 100) {
			c.invalid(at, *percent, "must be between 0 and 100")
		}
	}
	widest := int32(-1) // percentage of the steps so far that select all pods
	for i, step := range r.Steps {
		at := at.Index(i)
		percentOf(at.Child("percent"), step.Percent)
		if hold := step.HoldSeconds; hold != nil && (*hold < 0 || *hold > mostHoldSeconds) {
			c.invalid(at.Child("holdSeconds"), *hold, "must be between 0 and %d", mostHoldSeconds)
		}
		percent := int32(100)
		if step.Percent != nil {
			percent = *step.Percent
		}
		if percent >= 0 && percent <= widest {
			c.warn(at, "an earlier step includes all pods that this one does")
		}
		if s := compileStep(step); s.pods == nil && s.namespaces == nil {
			widest = max(widest, percent)
		}
	}
	if by := r.By; by != "" && by != kubeflowv1alpha1.RolloutByWorkload && by != kubeflowv1alpha1.RolloutByPod {
		c.errs = append(c.errs, field.NotSupported(path.Child("by"), by, []kubeflowv1alpha1.RolloutUnit{kubeflowv1alpha1.RolloutByPod, kubeflowv1alpha1.RolloutByWorkload}))
	}
	percentOf(path.Child("maxFailedPercent"), r.MaxFailedPercent)
	if r.AbortedRevision != "" {
		c.revision(path.Child("abortedRevision"), r.AbortedRevision)
	}
	if p := r.Promotion; p != nil {
		at := path.Child("promotion")
		c.revision(at.Child("revision"), p.Revision)
		if p.Step != nil && *p.Step < 1 {
			c.invalid(at.Child("step"), *p.Step, "must be at least 1")
		}
		if p.Revision != "" && p.Revision == r.AbortedRevision {
			c.warn(at, "the revision is aborted too, and abortedRevision wins")
		}
	}
}

func (c *checker) revision(at *field.Path, name string) {
	if !isRevision(name) {
		c.invalid(at, name, "must be the name of a revision, %d hex digits: see status.currentRevision", RevisionSize)
	}
}
