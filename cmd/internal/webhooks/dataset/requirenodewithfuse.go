// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"

	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/affinity"
	"github.com/sallyport-io/sallyport/internal/kube/nodeterms"
)

// requireNodeWithFuse requires nodes where the fuse of each Dataset may run, according
// to its node selector. A node must suit all Datasets of the pod, or one of them by the
// older semantics.
func requireNodeWithFuse(_ context.Context, d *draft) (stop bool, err error) {
	var any nodeterms.Alternatives
	var last affinity.Reason
	for _, m := range d.mounted {
		if len(m.Runtime.FuseSelector) == 0 {
			continue
		}
		list := m.Runtime.FuseSelector
		reason := affinity.Reason{Plugin: requireNodeWithFuseName, Dataset: m.Title(), Why: "nodes that the fuse's node selector selects are required"}
		if d.settings.RequiredSemantics == RequireAny {
			any, last = any.Or(list), reason
			continue
		}
		if err := d.require(nodeterms.Alternatives{list}, reason); err != nil {
			return false, err
		}
	}
	if len(any) > 1 {
		last.Dataset, last.Why = "", "nodes that the node selector of one of the datasets' fuses selects are required"
	}
	return false, d.require(any, last)
}
