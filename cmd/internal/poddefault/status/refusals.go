// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"time"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
)

// reportRefusals notes in the state of a rollout that this replica refuses too many workloads
// because of its revision. Each replica does that, because no other one knows its refusals.
// The leader then enters no further step of that revision.
func (c *Controller) reportRefusals(ctx context.Context) (again time.Duration) {
	for _, o := range c.watcher.Rollouts() {
		workloads := census{}
		o.Refusals(workloads.add)
		refused, all := workloads.total()
		stable := o.Record
		if refused == 0 || stable == nil || stable.Rollout == nil || stable.Rollout.Revision != o.Revision() || stable.Rollout.Refused != "" ||
			!workloads.tooMany(o.Rolls()) {
			continue
		}
		state := stable.Rollout.DeepCopy()
		state.Refused = fmt.Sprintf("%d of %d workloads are refused with revision %s (%d %%); the refusals name the conflicts. Change or abort it: kubectl sallyport rollout abort",
			refused, all, revision.Short(o.Revision()), percentOf(refused, all))
		if _, err := c.revisions.Patch(ctx, stable, revision.Change{Rollout: state}); err != nil && ctx.Err() == nil {
			c.log.Warn("cannot report refusals, will try again", "object", o.String(), "error", err)
		}
	}
	return c.pace.health
}
