// SPDX-License-Identifier: Apache-2.0

// Package placement explains why pods go to their nodes because of their datasets.
package placement

import (
	"context"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/live"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// A Placement lists the nodes that a pod requires or prefers because of its datasets.
type Placement struct {
	// Problem says why nothing is known: an existing pod would be refused now.
	Problem string       `json:"problem,omitempty"`
	Wants   []wantedNode `json:"wants,omitempty"`
	// Node is the pod's node.
	Node string `json:"node,omitempty"`
	// Nodes are the nodes of the cluster, best first.
	Nodes []review.NodeRank `json:"nodes,omitempty"`
}

// A wantedNode says which nodes are wanted, and by what.
type wantedNode struct {
	Plugin  string `json:"plugin"`
	Dataset string `json:"dataset,omitempty"`
	// Weight is 0 for requirements.
	Weight int    `json:"weight"`
	Why    string `json:"why"`
	Labels string `json:"labels,omitempty"`
	source string // for messages
}

// An Explainer explains with data of a cluster why pods go to their nodes.
type Explainer struct {
	cluster  *cluster.Cluster
	settings dataset.Settings
	source   dataset.Source
	notes    io.Writer

	nodes     []*manifest.Object
	nodesRead bool
}

// New returns an explainer for a cluster. Settings are those of the dataset webhook.
func New(c *cluster.Cluster, settings dataset.Settings, notes io.Writer) (*Explainer, error) {
	reader, err := live.NewReader(c.Config)
	if err != nil {
		return nil, err
	}
	return &Explainer{cluster: c, settings: settings, source: reader, notes: notes}, nil
}

// Explain explains an admitted pod, or a new one before datasets change it. It returns
// nil for a pod without datasets. The error is [dataset.IsRefusal] if the pod would be
// refused.
func (x *Explainer) Explain(ctx context.Context, namespace string, pod []byte) (*Placement, error) {
	settings := x.settings
	if settings.NamespaceLabel { // applies to all pods of namespaces with the label
		labels, err := x.cluster.NamespaceLabels(ctx, namespace)
		switch {
		case apierrors.IsForbidden(err):
			manifest.Note(x.notes, "note: you may not read the namespace %s: whether all of its pods ask to be placed by datasets is not known", namespace)
		case err != nil:
			return nil, err
		}
		settings.NamespaceLabel = labels[dataset.InjectionLabel] == "true"
	}
	reasons, err := dataset.Explain(ctx, x.source, settings, namespace, pod)
	switch {
	case apierrors.IsForbidden(err):
		manifest.Note(x.notes, "note: why the pod prefers nodes is left out: %v", err)
		return nil, nil
	case err != nil || len(reasons) == 0:
		return nil, err
	}
	var bound struct {
		Spec struct {
			NodeName string `json:"nodeName"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(pod, &bound); err != nil {
		return nil, err
	}
	p := &Placement{Node: bound.Spec.NodeName}
	for _, r := range reasons {
		p.Wants = append(p.Wants, wantedNode{r.Plugin, r.Dataset, r.Weight, r.Why, r.Term(), r.Source()})
	}
	if !x.nodesRead {
		if x.nodes, _, err = x.cluster.ListIfAllowed(ctx, "nodes", "/api/v1/nodes", x.notes); err != nil {
			return nil, err
		}
		x.nodesRead = true
	}
	p.Nodes = review.RankNodes(reasons, x.nodes)
	return p, nil
}

// maxNodes limits the printed nodes, not counting the pod's own.
const maxNodes = 10

// Print prints it, with a function for each line.
func (p *Placement) Print(line func(format string, args ...any)) {
	line("\nNodes that are required or preferred:")
	if p.Problem != "" {
		line("  not known: such a pod would be refused now: %s", p.Problem)
	}
	for i, w := range p.Wants {
		line("  [%d] %s", i+1, w.source)
	}
	number := func(i int) string { return fmt.Sprintf("[%d]", i+1) }
	for i, rank := range p.Nodes {
		here := ""
		if rank.Node == p.Node {
			here = ", where the pod is"
		}
		if i < maxNodes || here != "" {
			line("  node %s%s: %s", rank.Node, here, rank.Describe(" ", number))
		}
	}
	if len(p.Nodes) > maxNodes {
		line("  of %d nodes; -o json has them all", len(p.Nodes))
	}
}
