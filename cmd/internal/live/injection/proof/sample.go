// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/go-json-experiment/json"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// Most is the number of objects in a sample.
const Most = 20

// one is an object of a sample, and the namespace in which it is tried.
type one struct {
	title, namespace string
	selector         *metav1.LabelSelector
	// problem says why it cannot be tried.
	problem string
}

// sample returns all objects, or a choice of at most [Most]: first ClusterPodDefaults, which
// reach furthest, up to a half; then PodDefaults, one of each namespace in turn, so that no
// namespace fills it. The choice depends only on names.
func sample(ctx context.Context, c *cluster.Cluster) (chosen []one, total int, err error) {
	ours, err := list(ctx, c, "/apis/"+kubeflowv1alpha1.GroupVersion.String()+"/"+kubeflowv1alpha1.PodDefaultResource)
	if err != nil {
		return nil, 0, fmt.Errorf("list PodDefaults: %w", err)
	}
	wide, err := list(ctx, c, "/apis/"+sallyportv1alpha1.GroupVersion.String()+"/"+sallyportv1alpha1.ClusterPodDefaultResource)
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
	for _, o := range wide {
		chosen = append(chosen, ofCluster(o, namespaces))
	}
	for _, o := range ours {
		var pd kubeflowv1alpha1.PodDefault
		if err := json.Unmarshal(o.Raw, &pd); err != nil {
			return nil, 0, fmt.Errorf("%s: %w", o.Title(), err)
		}
		chosen = append(chosen, one{title: "PodDefault " + o.Namespace + "/" + o.Name, namespace: o.Namespace, selector: &pd.Spec.Selector})
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

// ofCluster tries a ClusterPodDefault in the first namespace that it selects, if possible
// not in one of Kubernetes' own, which servers exclude.
func ofCluster(o *manifest.Object, namespaces []*manifest.Object) one {
	out := one{title: "ClusterPodDefault " + o.Name}
	var pd sallyportv1alpha1.ClusterPodDefault
	if err := json.Unmarshal(o.Raw, &pd); err != nil {
		out.problem = "it cannot be read"
		return out
	}
	out.selector = &pd.Spec.Selector
	wanted := labels.Everything()
	if pd.Spec.NamespaceSelector != nil {
		var err error
		if wanted, err = metav1.LabelSelectorAsSelector(pd.Spec.NamespaceSelector); err != nil {
			out.problem = "its namespaceSelector does not parse"
			return out
		}
	}
	for _, n := range namespaces {
		if !wanted.Matches(labels.Set(n.Labels)) {
			continue
		}
		if out.namespace == "" || strings.HasPrefix(out.namespace, "kube-") && !strings.HasPrefix(n.Name, "kube-") {
			out.namespace = n.Name
		}
	}
	if out.namespace == "" {
		out.problem = "it selects no namespace"
	}
	return out
}
