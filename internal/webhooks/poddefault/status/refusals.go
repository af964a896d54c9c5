// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// watchRefusals sets the condition RolloutHealthy to False when this replica refuses too
// many workloads because of a revision that is rolled out. Each replica does that, because
// no other one knows its refusals. The condition then holds for that revision.
func (c *Controller) watchRefusals(ctx context.Context) {
	tick := time.NewTicker(c.pace.health)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, o := range c.watcher.Rollouts() {
			workloads := census{}
			o.Refusals(workloads.add)
			refused, all := workloads.total()
			spec := &rolledSpec{}
			if refused == 0 || json.Unmarshal(o.Spec(), spec) != nil || spec.Rollout == nil || !workloads.tooMany(spec.Rollout) ||
				meta.IsStatusConditionFalse(o.Status().Conditions, kubeflowv1alpha1.ConditionRolloutHealthy) {
				continue
			}
			next := o.Status().DeepCopy()
			condition := unhealthy(reasonRefused, "%d of %d workloads are refused with revision %s (%d %%); the refusals name the conflicts. Change or abort it: kubectl sallyport abort",
				refused, all, o.Revision(), percentOf(refused, all))
			condition.ObservedGeneration = o.Generation()
			meta.SetStatusCondition(&next.Conditions, condition)
			if _, err := c.patchStatus(ctx, o, o.Identity().ResourceVersion, next); err != nil && ctx.Err() == nil {
				c.log.Warn("cannot report refusals, will try again", "object", o.String(), "error", err)
			}
		}
	}
}
