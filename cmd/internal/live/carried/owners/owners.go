// SPDX-License-Identifier: Apache-2.0

// Package owners finds the workloads that pods belong to.
package owners

import (
	"context"
	"fmt"
	"io"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
)

// A Target is an object by kind and name.
type Target struct{ Kind, Name string }

// restartableKinds are the kinds that can be restarted.
var restartableKinds = []string{"Deployment", "StatefulSet", "DaemonSet"}

// A Finder finds the workloads of pods. It lists each kind of owner once.
type Finder struct {
	cluster   *cluster.Cluster
	notes     io.Writer
	namespace string
	kinds     map[schema.GroupVersionKind]map[types.UID]*metav1.ObjectMeta
}

// New returns a finder for the pods of a namespace, or of all if it is empty.
func New(c *cluster.Cluster, namespace string, notes io.Writer) *Finder {
	return &Finder{cluster: c, notes: notes, namespace: namespace, kinds: map[schema.GroupVersionKind]map[types.UID]*metav1.ObjectMeta{}}
}

// maxOwners limits the owners above a pod.
const maxOwners = 10

// Of returns the topmost controller of a pod that is known, and the lowest one that can be
// restarted.
func (o *Finder) Of(ctx context.Context, pod *metav1.ObjectMeta) (top, lowest Target, err error) {
	top = Target{"Pod", pod.Name}
	object := pod
	for range maxOwners {
		ref := metav1.GetControllerOf(object)
		if ref == nil {
			break
		}
		top = Target{ref.Kind, ref.Name}
		gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
		if lowest.Kind == "" && gvk.Group == appsv1.GroupName && slices.Contains(restartableKinds, ref.Kind) {
			lowest = top
		}
		known, err := o.read(ctx, gvk)
		if err != nil {
			return top, lowest, err
		}
		if object = known[ref.UID]; object == nil {
			break
		}
	}
	return top, lowest, nil
}

// read returns the objects of a kind of Kubernetes by UID, none for others.
func (o *Finder) read(ctx context.Context, gvk schema.GroupVersionKind) (map[types.UID]*metav1.ObjectMeta, error) {
	if known, read := o.kinds[gvk]; read {
		return known, nil
	}
	known := map[types.UID]*metav1.ObjectMeta{}
	o.kinds[gvk] = known
	i := slices.IndexFunc(workload.Kinds(), func(k workload.Kind) bool {
		return k.BuiltIn() && k.Name == gvk.Kind && k.GroupVersion == gvk.GroupVersion().String()
	})
	if i < 0 {
		return known, nil
	}
	kind := workload.Kinds()[i]
	err := o.cluster.EachMetadata(ctx, kind.Path(o.namespace), "", func(object *metav1.ObjectMeta) {
		known[object.UID] = &metav1.ObjectMeta{OwnerReferences: object.OwnerReferences}
	})
	switch {
	case apierrors.IsForbidden(err):
		manifest.Note(o.notes, "note: you may not list %s: pods are counted for their %s, not for the owners of these", kind.Resource, kind.Resource)
	case err != nil:
		return nil, fmt.Errorf("list %s: %w", kind.Resource, err)
	}
	return known, nil
}
