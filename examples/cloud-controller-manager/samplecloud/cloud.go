// SPDX-License-Identifier: Apache-2.0

// Package samplecloud is a cloud provider for examples and tests: what it has is in a
// file. Its disks are GCE persistent disks by name.
package samplecloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	cloudprovider "k8s.io/cloud-provider"
)

// Name is by which --cloud-provider chooses it.
const Name = "sample"

// Register makes the provider known to k8s.io/cloud-provider, once in a process.
func Register() {
	cloudprovider.RegisterCloudProvider(Name, func(config io.Reader) (cloudprovider.Interface, error) {
		if config == nil {
			return nil, errors.New("--cloud-config is needed: a file with the disks and instances of the cloud")
		}
		file, err := Read(config)
		if err != nil {
			return nil, fmt.Errorf("--cloud-config: %w", err)
		}
		return New(file), nil
	})
}

// Cloud is the provider. It has volumes, which it labels, and instances.
type Cloud struct{ file *File }

var (
	_ cloudprovider.Interface   = (*Cloud)(nil)
	_ cloudprovider.PVLabeler   = (*Cloud)(nil)
	_ cloudprovider.InstancesV2 = (*Cloud)(nil)
)

// New returns a cloud that has what is in a file.
func New(file *File) *Cloud { return &Cloud{file} }

// GetLabelsForVolume implements [cloudprovider.PVLabeler]. As real providers do, it
// knows its own volumes only.
func (c *Cloud) GetLabelsForVolume(ctx context.Context, pv *corev1.PersistentVolume) (map[string]string, error) {
	if err := c.answer(ctx); err != nil {
		return nil, err
	}
	disk, ok := c.file.Disks[pv.Spec.GCEPersistentDisk.PDName]
	switch {
	case !ok:
		return nil, errors.New("the cloud has no such disk")
	case disk.Error != "":
		return nil, errors.New(disk.Error)
	}
	return disk.Labels, nil
}

// answer takes as long as an answer does.
func (c *Cloud) answer(ctx context.Context) error {
	timer := time.NewTimer(c.file.Latency.Duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// InstanceExists implements [cloudprovider.InstancesV2].
func (c *Cloud) InstanceExists(_ context.Context, node *corev1.Node) (bool, error) {
	_, ok := c.file.Instances[node.Name]
	return ok, nil
}

// InstanceShutdown implements [cloudprovider.InstancesV2]: none is.
func (c *Cloud) InstanceShutdown(context.Context, *corev1.Node) (bool, error) { return false, nil }

// InstanceMetadata implements [cloudprovider.InstancesV2].
func (c *Cloud) InstanceMetadata(_ context.Context, node *corev1.Node) (*cloudprovider.InstanceMetadata, error) {
	instance, ok := c.file.Instances[node.Name]
	if !ok {
		return nil, cloudprovider.InstanceNotFound
	}
	return &cloudprovider.InstanceMetadata{
		ProviderID:    Name + "://" + node.Name,
		InstanceType:  instance.Type,
		Zone:          instance.Zone,
		Region:        instance.Region,
		NodeAddresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: instance.Address}},
	}, nil
}

// Initialize implements [cloudprovider.Interface]. There is nothing to do.
func (*Cloud) Initialize(cloudprovider.ControllerClientBuilder, <-chan struct{}) {}

// InstancesV2 implements [cloudprovider.Interface].
func (c *Cloud) InstancesV2() (cloudprovider.InstancesV2, bool) { return c, true }

// Instances implements [cloudprovider.Interface]; see InstancesV2.
func (*Cloud) Instances() (cloudprovider.Instances, bool) { return nil, false }

// LoadBalancer implements [cloudprovider.Interface]. There are none.
func (*Cloud) LoadBalancer() (cloudprovider.LoadBalancer, bool) { return nil, false }

// Zones implements [cloudprovider.Interface]; see InstancesV2.
func (*Cloud) Zones() (cloudprovider.Zones, bool) { return nil, false }

// Clusters implements [cloudprovider.Interface]. There are none.
func (*Cloud) Clusters() (cloudprovider.Clusters, bool) { return nil, false }

// Routes implements [cloudprovider.Interface]. There are none.
func (*Cloud) Routes() (cloudprovider.Routes, bool) { return nil, false }

// ProviderName implements [cloudprovider.Interface].
func (*Cloud) ProviderName() string { return Name }

// HasClusterID implements [cloudprovider.Interface].
func (*Cloud) HasClusterID() bool { return true }
