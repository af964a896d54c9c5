// SPDX-License-Identifier: Apache-2.0

package validate

import (
	corev1 "k8s.io/api/core/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// StrayMounts returns volumes that the object mounts, or reads variables from, and does
// not contain. The pod or another PodDefault may have them.
func StrayMounts(spec *kubeflowv1alpha1.PodDefaultSpec) []string {
	var stray []string
	known := make(map[string]bool, len(spec.Volumes)) // volumes of the object, and those already reported
	for i := range spec.Volumes {
		known[spec.Volumes[i].Name] = true
	}
	take := func(name string) {
		if !known[name] {
			known[name] = true
			stray = append(stray, name)
		}
	}
	look := func(mounts []corev1.VolumeMount, devices []corev1.VolumeDevice, env []corev1.EnvVar) {
		for i := range env {
			if source := env[i].ValueFrom; source != nil && source.FileKeyRef != nil {
				take(source.FileKeyRef.VolumeName)
			}
		}
		for i := range mounts {
			take(mounts[i].Name)
		}
		for i := range devices {
			take(devices[i].Name)
		}
	}
	look(spec.VolumeMounts, spec.VolumeDevices, spec.Env)
	for _, t := range broughtBy(spec, nil) {
		look(t.VolumeMounts, t.VolumeDevices, t.Env)
	}
	return stray
}
