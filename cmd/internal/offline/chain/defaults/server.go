// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// What the API server and its plugins do to objects before policies see them.

// Wipe removes what the API server removes from an object that is created: k8s.io/apiserver's
// rest.WipeObjectMetaSystemFields, and fields that it sets itself.
func Wipe(object runtime.Object) {
	if m, err := meta.Accessor(object); object != nil && err == nil {
		m.SetUID("")
		m.SetCreationTimestamp(metav1.Time{})
		m.SetDeletionTimestamp(nil)
		m.SetDeletionGracePeriodSeconds(nil)
		m.SetManagedFields(nil)
		m.SetSelfLink("")
	}
}

// TokenVolume begins the name of the volume that the plugin ServiceAccount adds to a pod.
const TokenVolume = "kube-api-access-"

// WithToken returns a pod as the plugin ServiceAccount completes it: with the volume of the token, and its
// mounts. It returns nil for what it leaves as it is.
func WithToken(object runtime.Object) *corev1.Pod {
	pod, ok := object.(*corev1.Pod)
	if !ok || pod.Spec.AutomountServiceAccountToken != nil && !*pod.Spec.AutomountServiceAccountToken {
		return nil
	}
	const path = "/var/run/secrets/kubernetes.io/serviceaccount"
	name := TokenVolume + "xxxxx"
	out, mounted := pod.DeepCopy(), false
	for _, containers := range [][]corev1.Container{out.Spec.Containers, out.Spec.InitContainers} {
		for i := range containers {
			c := &containers[i]
			if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == path }) {
				c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, ReadOnly: true, MountPath: path})
				mounted = true
			}
		}
	}
	if !mounted {
		return nil
	}
	v1 := "v1"
	out.Spec.Volumes = append(out.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(60*60 + 7))}},
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: v1, FieldPath: "metadata.namespace"}}}}},
	}}}})
	Pod(out)
	return out
}

// AsInternal completes an object as its conversion to the API server's internal version does: the strings of
// a Secret become data.
func AsInternal(object runtime.Object) {
	secret, ok := object.(*corev1.Secret)
	if !ok || len(secret.StringData) == 0 {
		return
	}
	data := maps.Clone(secret.Data)
	if data == nil {
		data = map[string][]byte{}
	}
	for key, text := range secret.StringData {
		data[key] = []byte(text)
	}
	secret.Data, secret.StringData = data, nil
}

// StoredNamespace completes a Namespace. One that has not been read from a cluster has the finalizer that
// every namespace gets: k8s.io/kubernetes/pkg/registry/core/namespace.
func StoredNamespace(namespace *corev1.Namespace) {
	Namespace(namespace)
	if finalizers := &namespace.Spec.Finalizers; namespace.UID == "" && !slices.Contains(*finalizers, corev1.FinalizerKubernetes) {
		*finalizers = append(*finalizers, corev1.FinalizerKubernetes)
	}
}
