// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/kinds"
	"github.com/sallyport-io/sallyport/cmd/test/fluid"
)

// dataset makes a Dataset with its runtime, as it is when Fluid's controllers are done:
// bound, with a volume and a claim. Workers have to be in the zone and region.
func (c *cluster) dataset(t *testing.T, namespace, name, kind, runtimeType string) {
	t.Helper()
	c.create(t, fluid.Object(kinds.Kind(kind), namespace, name, nil, fluid.WorkersIn(corev1.LabelTopologyZone, "z1", corev1.LabelTopologyRegion, "r1")))
	c.create(t, fluid.Object(kinds.Dataset, namespace, name, nil, fluid.Bound(namespace, name, runtimeType)))
	c.claim(t, namespace, name)
}

// claim makes a bound claim and its volume.
func (c *cluster) claim(t *testing.T, namespace, name string) {
	t.Helper()
	volume, class := namespace+"-"+name, ""
	room := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	labels := map[string]string{"fluid.io/s-" + volume: "true"}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels, Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}, VolumeName: volume, StorageClassName: &class,
			Resources: corev1.VolumeResourceRequirements{Requests: room},
		},
	}
	c.create(t, claim)
	c.create(t, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: volume, Labels: labels},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: claim.Spec.AccessModes, Capacity: room,
			ClaimRef: &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: namespace, Name: name, UID: claim.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: "fuse.csi.fluid.io", VolumeHandle: volume,
				VolumeAttributes: map[string]string{"fluid_path": "/runtime-mnt/juicefs/" + namespace + "/" + name + "/juicefs-fuse", "mount_type": "fuse.juicefs"},
			}},
		},
	})
	claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, AccessModes: claim.Spec.AccessModes, Capacity: room}
	if err := c.client.Status().Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
}

// pod is one that asks for scheduling by datasets, and mounts the claims.
func pod(namespace, name string, claims ...string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{dataset.ServerfulLabel: "true"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}},
	}
	for _, claim := range claims {
		v := corev1.Volume{Name: claim}
		v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}
		p.Spec.Volumes = append(p.Spec.Volumes, v)
		p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: claim, MountPath: "/" + claim})
	}
	return p
}

// places waits until the pods are scheduled, and tells where.
func (c *cluster) places(t *testing.T, pods ...*corev1.Pod) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, pod := range pods {
		eventually(t, "the pod "+pod.Name+" to run", func(ctx context.Context) (bool, error) {
			err := c.client.Get(ctx, clientKey(pod), pod)
			return err == nil && pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodRunning, err
		})
		out[pod.Spec.NodeName]++
	}
	return out
}
