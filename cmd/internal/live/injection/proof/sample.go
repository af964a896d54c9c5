// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/sallyport-io/sallyport/cmd/internal/live/injection"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// Most is the number of objects in a sample.
const Most = 20

// one is an object of a sample, and the namespace in which it is tried.
type one struct {
	*injection.Default
	namespace string
}

// sample returns all objects, or a choice of at most [Most]: first ClusterPodDefaults, which
// reach furthest, up to a half; then PodDefaults, one of each namespace in turn, so that no
// namespace fills it. The choice depends only on names.
func sample(ctx context.Context, c *cluster.Cluster) (chosen []one, total int, err error) {
	ours, err := list(ctx, c, injection.CollectionOf(false, ""))
	if err != nil {
		return nil, 0, fmt.Errorf("list PodDefaults: %w", err)
	}
	wide, err := list(ctx, c, injection.CollectionOf(true, ""))
	if err != nil {
		return nil, 0, fmt.Errorf("list ClusterPodDefaults: %w", err)
	}
	total = len(ours) + len(wide)
	if total == 0 {
		return nil, 0, nil
	}
	if total > Most {
		wide = wide[:min(len(wide), max(Most/2, Most-len(ours)))]
		ours = inTurn(ours)[:min(len(ours), Most-len(wide))]
	}
	var namespaces []*manifest.Object
	if len(wide) > 0 {
		if namespaces, err = list(ctx, c, "/api/v1/namespaces"); err != nil {
			return nil, 0, fmt.Errorf("list namespaces: %w", err)
		}
	}
	for _, o := range slices.Concat(wide, ours) {
		d, err := injection.New(o)
		if err != nil {
			return nil, 0, err
		}
		chosen = append(chosen, one{d, namespaceFor(d, namespaces)})
	}
	return chosen, total, nil
}

// list returns the objects of a collection by namespace and name; none for a kind that does
// not exist.
func list(ctx context.Context, c *cluster.Cluster, path string) ([]*manifest.Object, error) {
	objects, err := c.List(ctx, path)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	slices.SortFunc(objects, func(a, b *manifest.Object) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return objects, err
}

// inTurn returns one object of each namespace, then the second of each, and so on.
func inTurn(objects []*manifest.Object) []*manifest.Object {
	turn, seen := make(map[*manifest.Object]int, len(objects)), map[string]int{}
	for _, o := range objects {
		turn[o] = seen[o.Namespace]
		seen[o.Namespace]++
	}
	out := slices.Clone(objects)
	slices.SortStableFunc(out, func(a, b *manifest.Object) int { return turn[a] - turn[b] })
	return out
}

// namespaceFor returns the namespace in which an object is tried: of a ClusterPodDefault the first that it selects, if possible
// not one of Kubernetes' own, which servers exclude; empty if there is none.
func namespaceFor(d *injection.Default, namespaces []*manifest.Object) (name string) {
	if !d.Plan.Cluster() {
		return d.Namespace
	}
	for _, n := range namespaces {
		if d.Plan.SelectsNamespace(n.Labels) && (name == "" || strings.HasPrefix(name, "kube-") && !strings.HasPrefix(n.Name, "kube-")) {
			name = n.Name
		}
	}
	return name
}
