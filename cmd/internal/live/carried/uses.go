// SPDX-License-Identifier: Apache-2.0

package carried

import (
	"context"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/live/carried/references"
	"github.com/sallyport-io/sallyport/cmd/internal/live/injection"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
	"github.com/sallyport-io/sallyport/internal/store"
)

// A Bringer is a PodDefault or ClusterPodDefault that brings something to pods.
type Bringer struct {
	*manifest.Object
	// Places are the fields with a reference: "spec.volumes[creds].secret.secretName: creds".
	Places []string
	// Pods are the pods that carry its mark and have not ended.
	Pods []Carrier
}

// A Carrier is a pod that an object was applied to.
type Carrier struct {
	Namespace, Name string
	// State says how the object was when it was applied.
	State string
	// Current is set if it is so now.
	Current bool
}

// Bringers finds the objects of a namespace, or of all if it is empty, that bring something of a
// kind whose name contains text, and the pods that carry them. It notes on notes if the user may not
// list ClusterPodDefaults or pods; without the right to list PodDefaults the error is forbidden.
func Bringers(ctx context.Context, c *cluster.Cluster, namespace, kind, text string, notes io.Writer) ([]*Bringer, error) {
	var found []*Bringer
	objects, err := c.List(ctx, injection.CollectionOf(false, namespace))
	switch {
	case apierrors.IsNotFound(err):
		return nil, injection.ErrNoPodDefaults
	case err != nil:
		return nil, fmt.Errorf("list PodDefaults: %w", err)
	}
	more, _, err := c.ListIfAllowed(ctx, "ClusterPodDefaults", injection.CollectionOf(true, ""), notes)
	if err != nil {
		return nil, err
	}
	for _, o := range append(more, objects...) {
		if places := references.In(o.Raw, kind, text); len(places) > 0 {
			found = append(found, &Bringer{Object: o, Places: places})
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	type marking struct {
		*Bringer
		*injection.Default
	}
	marks := map[string][]marking{} // the same name may exist in several namespaces
	for _, b := range found {
		d, err := injection.New(b.Object)
		if err != nil {
			return nil, err
		}
		marks[d.Plan.Mark()] = append(marks[d.Plan.Mark()], marking{b, d})
	}
	pods := workload.Kinds()[0].Path(namespace)
	err = c.EachMetadata(ctx, pods, store.RunningPods, func(pod *metav1.ObjectMeta) {
		for _, mark := range meta.Marks(pod.Annotations) {
			for _, m := range marks[mark.Annotation] {
				if b := m.Bringer; b.Namespace == "" || b.Namespace == pod.Namespace {
					b.Pods = append(b.Pods, Carrier{pod.Namespace, pod.Name, mark.State(), m.Plan.Wrote(mark)})
				}
			}
		}
	})
	if apierrors.IsForbidden(err) {
		manifest.Note(notes, "note: you may not list pods: which ones have it is not known")
		err = nil
	}
	return found, err
}
