// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// mountPropagationInjector makes containers see what the fuse remounts after a failure:
// it sets HostToContainer on mounts of Datasets that set nothing themselves. Init
// containers have finished by then and are left alone.
func mountPropagationInjector(_ context.Context, d *draft) (stop bool, err error) {
	for i := range d.containers {
		d.propagate(&d.containers[i], d.mounted, false, mountPropagationInjectorName)
	}
	return false, nil
}

// propagate sets the propagation of a container's mounts of Datasets, and reports
// whether it has any. Force also overrides None.
func (d *draft) propagate(c *draftContainer, of []*Mounted, force bool, plugin string) (mounts bool) {
	if c.made != nil {
		for j := range c.made.VolumeMounts {
			if mount := &c.made.VolumeMounts[j]; d.behind(mount.Name, of) != nil {
				mounts = true
				if mount.MountPropagation == nil || force {
					propagation := corev1.MountPropagationHostToContainer
					mount.MountPropagation = &propagation
				}
			}
		}
		return mounts
	}
	for j := range c.container.mounts {
		mount := &c.container.mounts[j]
		m := d.behind(mount.volume, of)
		if m == nil {
			continue
		}
		mounts = true
		done := slices.ContainsFunc(c.propagate, func(set propagation) bool { return set.mount == j })
		if done || mount.recursive || mount.propagation != "" && (!force || mount.propagation != "None") {
			continue
		}
		c.propagate = append(c.propagate, propagation{j, m, plugin})
		d.changes++
	}
	return mounts
}

// behind returns the Dataset of a volume if it is among the given ones, or nil.
func (d *draft) behind(volume string, of []*Mounted) *Mounted {
	for i := range d.volumes {
		v := &d.volumes[i]
		if v.name != volume || v.claim == "" {
			continue
		}
		for _, m := range of {
			if m.Claim == v.claim {
				return m
			}
		}
	}
	return nil
}
