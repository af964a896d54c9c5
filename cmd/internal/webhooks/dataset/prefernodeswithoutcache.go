// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"

	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/affinity"
	"github.com/sallyport-io/sallyport/internal/kube/nodeterms"
)

// preferNodesWithoutCache keeps pods without Datasets away from nodes with cache, if
// possible. It ends the pipeline.
func preferNodesWithoutCache(_ context.Context, d *draft) (stop bool, err error) {
	if len(d.mounted) > 0 {
		return true, nil
	}
	without := []nodeterms.Requirement{nodeterms.New(datasetNumLabel, nodeterms.DoesNotExist)}
	d.prefer([]affinity.Preferred{{
		Weight: 100, Expressions: without,
		Reason: affinity.Reason{Plugin: preferNodesWithoutCacheName, Weight: 100, Why: "nodes without the cache of any dataset are preferred", One: without},
	}})
	return true, nil
}
