// SPDX-License-Identifier: Apache-2.0

package samplecloud

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// maxFile bounds the file.
const maxFile = 1 << 20

// File is what the cloud has: the file of --cloud-config, YAML.
type File struct {
	// Disks are those that the cloud has, by name.
	Disks map[string]Disk `json:"disks,omitempty"`
	// Instances are the machines of nodes, by the node's name.
	Instances map[string]Instance `json:"instances,omitempty"`
	// Latency is how long every answer takes.
	Latency metav1.Duration `json:"latency,omitzero"`
}

// Disk is a disk with the labels that its volume gets.
type Disk struct {
	Labels map[string]string `json:"labels,omitempty"`
	// Error is what is answered in place of labels.
	Error string `json:"error,omitempty"`
}

// Instance is a machine.
type Instance struct {
	Type    string `json:"type,omitempty"`
	Zone    string `json:"zone,omitempty"`
	Region  string `json:"region,omitempty"`
	Address string `json:"address,omitempty"`
}

// Read reads a file. The error reports all problems.
func Read(from io.Reader) (*File, error) {
	data, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("the file is larger than %d bytes", maxFile)
	}
	file := &File{}
	if err := yaml.UnmarshalStrict(data, file); err != nil {
		return nil, err
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(file.Disks)) {
		if disk := file.Disks[name]; disk.Error != "" && len(disk.Labels) > 0 {
			errs = append(errs, fmt.Errorf("disks[%s]: labels and error exclude each other", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(file.Instances)) {
		if address := file.Instances[name].Address; net.ParseIP(address) == nil {
			errs = append(errs, fmt.Errorf("instances[%s].address: %q is not an IP address", name, address))
		}
	}
	if file.Latency.Duration < 0 || file.Latency.Duration > time.Hour {
		errs = append(errs, fmt.Errorf("latency: %s: choose from 0s to 1h", file.Latency.Duration))
	}
	return file, errors.Join(errs...)
}
