// SPDX-License-Identifier: Apache-2.0

package review

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/affinity"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// A NodeRank says what attracts a pod to a node or keeps it off.
type NodeRank struct {
	Node string `json:"node"`
	// Weight is the sum of the weights that attract the pod.
	Weight int `json:"weight"`
	// Draws and Lacks are indexes of reasons: preferences that the node meets, and requirements
	// that it does not meet. A node that lacks one cannot run the pod.
	Draws []int `json:"draws,omitempty"`
	Lacks []int `json:"lacks,omitempty"`
}

// RankNodes ranks the nodes: best first, nodes that cannot run the pod last.
func RankNodes(reasons []affinity.Reason, nodes []*manifest.Object) []NodeRank {
	ranks := make([]NodeRank, len(nodes))
	for i, node := range nodes {
		rank := NodeRank{Node: node.Name}
		for n, reason := range reasons {
			switch meets := reason.Meets(node.Labels); {
			case meets:
				rank.Weight += reason.Weight
				rank.Draws = append(rank.Draws, n)
			case reason.Weight == 0:
				rank.Lacks = append(rank.Lacks, n)
			}
		}
		ranks[i] = rank
	}
	slices.SortStableFunc(ranks, func(a, b NodeRank) int {
		return cmp.Or(cmp.Compare(min(len(a.Lacks), 1), min(len(b.Lacks), 1)), cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.Node, b.Node))
	})
	return ranks
}

// Describe returns the rank as text, with reasons under the given names.
func (r NodeRank) Describe(separator string, name func(reason int) string) string {
	names := func(reasons []int) string {
		out := make([]string, len(reasons))
		for i, reason := range reasons {
			out[i] = name(reason)
		}
		return strings.Join(out, separator)
	}
	switch {
	case len(r.Lacks) > 0:
		return "cannot run the pod: " + names(r.Lacks)
	case len(r.Draws) == 0:
		return "0: no preference"
	}
	return fmt.Sprintf("%d: %s", r.Weight, names(r.Draws))
}
