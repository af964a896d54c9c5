// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
)

// containersAlone is the basis of a pod about which nothing says how it was sent.
const containersAlone = "only its containers: the rest of the original is unknown"

// original returns what a running pod was made from, as far as known: the owner's
// template with its labels, the object last applied with kubectl, or otherwise its
// containers with only their images.
func original(ctx context.Context, c *cluster.Cluster, stored *manifest.Object, known *Defaults) (pod *manifest.Object, basis string, err error) {
	var added map[string]string // labels, some with stand-in values
	owner, err := c.Owner(ctx, stored)
	if err != nil {
		return nil, "", err
	}
	if owner != nil {
		var pods []*workload.Pod
		if pods, err = c.PodsOf(ctx, owner); err == nil {
			pod, added, basis = pods[0].Object, pods[0].Added, "the template of "+owner.Title()
		}
	} else if applied := stored.Annotations[corev1.LastAppliedConfigAnnotation]; applied != "" {
		var found []*manifest.Object
		if found, err = manifest.FromJSON([]byte(applied)); err == nil && len(found) == 1 {
			pod, basis = found[0], "its last-applied configuration"
		}
	}
	if err != nil {
		return nil, "", err
	}
	if pod == nil {
		pod, err = skeleton(stored, known)
		return pod, containersAlone, err
	}
	own := maps.Clone(pod.Labels)
	if own == nil {
		own = map[string]string{}
	}
	maps.DeleteFunc(own, func(key, _ string) bool { _, given := added[key]; return given })
	for key, value := range stored.Labels {
		if _, there := own[key]; !there && !known.adds(stored, key) {
			own[key] = value
		}
	}
	pod, err = withMetadata(pod, stored, own, pod.Annotations)
	return pod, basis, err
}

// adds reports whether an object applied to the pod has added a label.
func (k *Defaults) adds(stored *manifest.Object, key string) bool {
	return k.carried(stored, func(c *plan.Plan) bool { return c.AddsLabel(key) })
}

// carried reports whether an object that is like this was applied to the pod.
func (k *Defaults) carried(stored *manifest.Object, like func(*plan.Plan) bool) bool {
	return slices.ContainsFunc(k.All, func(d *Default) bool {
		c := d.Plan.CarriedBy(stored.Annotations)
		return c != nil && like(c)
	})
}

// withMetadata returns a pod with another one's name and owners, and these labels and
// annotations.
func withMetadata(pod, named *manifest.Object, labels, annotations map[string]string) (*manifest.Object, error) {
	return pod.EditMetadata(func(meta map[string]any) {
		clear(meta)
		meta["name"], meta["namespace"] = named.Name, named.Namespace
		if len(named.OwnerReferences) > 0 { // rollouts go by them
			meta["ownerReferences"] = named.OwnerReferences
		}
		if len(labels) > 0 {
			meta["labels"] = labels
		}
		if len(annotations) > 0 {
			meta["annotations"] = annotations
		}
	})
}

// skeleton returns a pod with the names and images of its containers, except those that
// PodDefaults have added.
func skeleton(stored *manifest.Object, known *Defaults) (*manifest.Object, error) {
	var body struct {
		Spec struct {
			Containers     []corev1.Container `json:"containers"`
			InitContainers []corev1.Container `json:"initContainers"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(stored.Raw, &body); err != nil {
		return nil, fmt.Errorf("%s: %w", stored.Title(), err)
	}
	bare := func(list []corev1.Container) []map[string]any {
		out := []map[string]any{}
		for _, container := range list {
			if !known.carried(stored, func(c *plan.Plan) bool { return c.Unpack().AddsContainer(container.Name) }) {
				out = append(out, map[string]any{"name": container.Name, "image": container.Image})
			}
		}
		return out
	}
	spec := map[string]any{"containers": bare(body.Spec.Containers)}
	if init := bare(body.Spec.InitContainers); len(init) > 0 {
		spec["initContainers"] = init
	}
	raw, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": spec}, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	own := map[string]string{}
	for key, value := range stored.Labels {
		if !known.adds(stored, key) {
			own[key] = value
		}
	}
	annotations := map[string]string{}
	if value, excluded := stored.Annotations[meta.ExcludeAnnotation]; excluded {
		annotations[meta.ExcludeAnnotation] = value
	}
	return withMetadata(stored.Part("", raw, stored.TypeMeta, metav1.ObjectMeta{}), stored, own, annotations)
}
