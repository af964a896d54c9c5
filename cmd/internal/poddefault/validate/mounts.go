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
	look := func(mounts []corev1.VolumeMount, devices []corev1.VolumeDevice, env []corev1.EnvVar) {
		var names []string
		for i := range env {
			if source := env[i].ValueFrom; source != nil && source.FileKeyRef != nil {
				names = append(names, source.FileKeyRef.VolumeName)
			}
		}
		for i := range mounts {
			names = append(names, mounts[i].Name)
		}
		for i := range devices {
			names = append(names, devices[i].Name)
		}
		for _, name := range names {
			if !known[name] {
				known[name] = true
				stray = append(stray, name)
			}
		}
	}
	look(spec.VolumeMounts, spec.VolumeDevices, spec.Env)
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Sidecars} {
		for i := range list {
			look(list[i].VolumeMounts, list[i].VolumeDevices, list[i].Env)
		}
	}
	return stray
}
