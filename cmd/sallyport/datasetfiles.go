// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/webhooks/dataset"
)

// datasetFiles are claims, Datasets, runtimes and nodes from files, where serve has those
// of a cluster.
type datasetFiles struct {
	index *dataset.Index
	nodes []*object
}

func newDatasetFiles() *datasetFiles { return &datasetFiles{index: dataset.NewIndex()} }

// load takes what the webhook reads out of the objects; those that name no namespace are
// of the given one. The error has every mistake.
func (f *datasetFiles) load(objects []*object, namespace string) (rest []*object, err error) {
	var errs []error
	kinds := dataset.Kinds()
	for _, object := range objects {
		kind := dataset.Kind(object.Kind)
		switch {
		case object.gvk() == schema.GroupVersionKind{Version: "v1", Kind: "Node"}:
			f.nodes = append(f.nodes, object)
			continue
		case kinds[kind] != object.APIVersion:
			rest = append(rest, object)
			continue
		}
		ref, parsed, err := dataset.Parse(kind, object.raw)
		if err != nil {
			errs = append(errs, object.document.errorAt(object.pointer+"/metadata", "the "+object.Kind+" has no metadata.name"))
			continue
		}
		if ref.Namespace == "" && kind != dataset.VolumeKind {
			ref.Namespace = namespace
		}
		f.index.Set(ref, parsed)
	}
	return rest, errors.Join(errs...)
}

// rank says of each node that was given what draws the pod there, or keeps it away: the
// best first.
func (f *datasetFiles) rank(ctx context.Context, out *outcome, settings dataset.Settings, notes io.Writer) error {
	if len(f.nodes) == 0 || out.denied != nil || out.object.gvk() != (schema.GroupVersionKind{Version: "v1", Kind: "Pod"}) {
		return nil
	}
	reasons, err := dataset.Explain(ctx, f.index, settings, out.namespace, out.after)
	if err != nil {
		return fmt.Errorf("why nodes are preferred: %w", err)
	}
	if len(reasons) == 0 {
		return nil
	}
	type ranked struct {
		name   string
		weight int
		text   string
	}
	var list []ranked
	for _, node := range f.nodes {
		weight, sources, missing := 0, []string{}, []string{}
		for _, reason := range reasons {
			switch meets := reason.Meets(node.Labels); {
			case meets:
				weight += reason.Weight
				sources = append(sources, reason.Source())
			case reason.Weight == 0:
				missing = append(missing, reason.Source())
			}
		}
		switch {
		case len(missing) > 0:
			list = append(list, ranked{node.Name, -1, "cannot run the pod: " + strings.Join(missing, "; ")})
		case len(sources) == 0:
			list = append(list, ranked{node.Name, 0, "0: nothing draws the pod there"})
		default:
			list = append(list, ranked{node.Name, weight, fmt.Sprintf("%d: %s", weight, strings.Join(sources, "; "))})
		}
	}
	slices.SortStableFunc(list, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.name, b.name))
	})
	for _, node := range list {
		note(notes, "note: %s on node %s: %s", out.object.title(), node.name, node.text)
	}
	return nil
}
