// SPDX-License-Identifier: Apache-2.0

package validate

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// names warns of volumes whose Secret, ConfigMap or claim can never exist. The API server
// accepts such names: a pod waits forever for the object or, if it is optional, runs without.
func (c *checker) names(path *field.Path) {
	for i := range c.spec.Volumes {
		v, at := &c.spec.Volumes[i], path.Child("volumes").Index(i)
		switch {
		case v.Secret != nil:
			c.name(at.Child("secret", "secretName"), v.Secret.SecretName, v.Secret.Optional)
		case v.ConfigMap != nil:
			c.name(at.Child("configMap", "name"), v.ConfigMap.Name, v.ConfigMap.Optional)
		case v.PersistentVolumeClaim != nil:
			c.name(at.Child("persistentVolumeClaim", "claimName"), v.PersistentVolumeClaim.ClaimName, nil)
		case v.Projected != nil:
			c.projectedNames(at.Child("projected", "sources"), v.Projected.Sources)
		}
	}
}

func (c *checker) projectedNames(path *field.Path, sources []corev1.VolumeProjection) {
	for i := range sources {
		at := path.Index(i)
		if secret := sources[i].Secret; secret != nil {
			c.name(at.Child("secret", "name"), secret.Name, secret.Optional)
		}
		if configMap := sources[i].ConfigMap; configMap != nil {
			c.name(at.Child("configMap", "name"), configMap.Name, configMap.Optional)
		}
	}
}

func (c *checker) name(at *field.Path, name string, optional *bool) {
	if name == "" || len(validation.IsDNS1123Subdomain(name)) == 0 {
		return
	}
	if ptr.Deref(optional, false) {
		c.warn(at, "no object can have this name, so it is always missing")
	} else {
		c.warn(at, "no object can have this name: pods that get the volume wait for it forever")
	}
}
