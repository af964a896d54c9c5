// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/examples/crontab/api/v1beta1"
)

// replicasAnnotation keeps what this version has no field for.
const replicasAnnotation = "stable.example.com/replicas"

// ConvertTo makes the hub of a CronTab.
func (c *CronTab) ConvertTo(dst conversion.Hub) error {
	hub := dst.(*v1beta1.CronTab)
	hub.ObjectMeta = c.ObjectMeta
	hub.Spec.Image = c.Spec.Image
	hub.Status.CronJob = c.Status.CronJob
	conversion.Restore(hub, replicasAnnotation, &hub.Spec.Replicas)
	return hub.SetCronSpec(c.Spec.CronSpec)
}

// ConvertFrom makes a CronTab of the hub.
func (c *CronTab) ConvertFrom(src conversion.Hub) (err error) {
	hub := src.(*v1beta1.CronTab)
	c.ObjectMeta = hub.ObjectMeta
	c.Spec.Image = hub.Spec.Image
	c.Status.CronJob = hub.Status.CronJob
	if c.Spec.CronSpec, err = hub.CronSpec(c); err != nil || hub.Spec.Replicas == nil {
		return err
	}
	return conversion.Stash(c, replicasAnnotation, *hub.Spec.Replicas)
}
