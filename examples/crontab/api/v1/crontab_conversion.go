// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/examples/crontab/api/v1beta1"
)

// ConvertTo makes the hub of a CronTab.
func (c *CronTab) ConvertTo(dst conversion.Hub) error {
	hub := dst.(*v1beta1.CronTab)
	hub.ObjectMeta = c.ObjectMeta
	hub.Spec.Image = c.Spec.Image
	hub.Spec.Replicas = c.Spec.Replicas
	hub.Status.CronJob = c.Status.CronJob
	return hub.SetCronSpec(c.Spec.CronSpec)
}

// ConvertFrom makes a CronTab of the hub.
func (c *CronTab) ConvertFrom(src conversion.Hub) (err error) {
	hub := src.(*v1beta1.CronTab)
	c.ObjectMeta = hub.ObjectMeta
	c.Spec.Image = hub.Spec.Image
	c.Spec.Replicas = hub.Spec.Replicas
	c.Status.CronJob = hub.Status.CronJob
	c.Spec.CronSpec, err = hub.CronSpec(c)
	return err
}
