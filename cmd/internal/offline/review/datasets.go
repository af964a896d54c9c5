// SPDX-License-Identifier: Apache-2.0

package review

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/kinds"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
)

// datasets serves claims, Datasets, runtimes and nodes from files. In serve they come from the
// cluster.
type datasets struct {
	index *dataset.Index
	nodes []*manifest.Object
	// missing lists the objects that were looked up since the last outcome and are not in the
	// files, each once.
	mu      sync.Mutex
	missing []dataset.Ref
	seen    map[dataset.Ref]bool
}

func newDatasets() *datasets {
	return &datasets{index: dataset.NewIndex(), seen: map[dataset.Ref]bool{}}
}

// Find implements [dataset.Source].
func (f *datasets) Find(ctx context.Context, ref dataset.Ref, fresh bool) (*dataset.Object, error) {
	found, err := f.index.Find(ctx, ref, fresh)
	if err == nil && found == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		if !f.seen[ref] {
			f.seen[ref] = true
			f.missing = append(f.missing, ref)
		}
	}
	return found, err
}

// tellMissing lists, for a denied pod, the objects that the webhook looked up and the files do
// not have.
func (f *datasets) tellMissing(out *Outcome, notes io.Writer) {
	f.mu.Lock()
	missing := f.missing
	f.missing, f.seen = nil, map[dataset.Ref]bool{}
	f.mu.Unlock()
	if out.Denied == nil {
		return
	}
	for _, ref := range missing {
		where := " -n " + ref.Namespace
		if ref.Namespace == "" {
			where = ""
		}
		resource := strings.ToLower(string(ref.Kind))
		if group, _, ok := strings.Cut(kinds.All()[ref.Kind], "/"); ok {
			resource += "." + group
		}
		manifest.Note(notes, "note: %s: %s was not given: if the cluster has it, add the output of 'kubectl get %s %s%s -o yaml' to --with", out.Object.Title(), ref, resource, ref.Name, where)
	}
}

// load removes the objects that the webhook reads from the list. Objects without a namespace
// get the given one. The error reports all problems.
func (f *datasets) load(objects []*manifest.Object, namespace string) (rest []*manifest.Object, err error) {
	var errs []error
	versions := kinds.All()
	for _, object := range objects {
		kind := kinds.Kind(object.Kind)
		switch {
		case object.GVK() == schema.GroupVersionKind{Version: "v1", Kind: "Node"}:
			f.nodes = append(f.nodes, object)
			continue
		case versions[kind] != object.APIVersion:
			rest = append(rest, object)
			continue
		}
		ref, parsed, err := dataset.Parse(kind, object.Raw)
		if err != nil {
			errs = append(errs, object.ErrorAt("/metadata", "the "+object.Kind+" has no metadata.name"))
			continue
		}
		if ref.Namespace == "" && kind != kinds.Volume {
			ref.Namespace = namespace
		}
		f.index.Set(ref, parsed)
	}
	return rest, errors.Join(errs...)
}

// rank lists, for each node in the files, what attracts the pod to it or keeps the pod off,
// best node first.
func (f *datasets) rank(ctx context.Context, out *Outcome, settings dataset.Settings, notes io.Writer) error {
	if len(f.nodes) == 0 || out.Denied != nil || out.Object.GVK() != workload.PodKind || len(out.Request.Object.Raw) == 0 {
		return nil
	}
	reasons, err := dataset.Explain(ctx, f.index, settings, out.Request.Namespace, out.After)
	if err != nil {
		return fmt.Errorf("why nodes are preferred: %w", err)
	}
	if len(reasons) == 0 {
		return nil
	}
	for _, node := range RankNodes(reasons, f.nodes) {
		manifest.Note(notes, "note: %s on node %s: %s", out.Object.Title(), node.Node, node.Describe("; ", func(i int) string { return reasons[i].Source() }))
	}
	return nil
}
