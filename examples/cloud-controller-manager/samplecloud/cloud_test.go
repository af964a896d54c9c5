// SPDX-License-Identifier: Apache-2.0

package samplecloud

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cloudprovider "k8s.io/cloud-provider"
)

func read(t *testing.T, text string) *File {
	t.Helper()
	file, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func volume(disk string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{}
	pv.Spec.GCEPersistentDisk = &corev1.GCEPersistentDiskVolumeSource{PDName: disk}
	return pv
}

func TestWhatTheCloudSaysOfVolumes(t *testing.T) {
	c := New(read(t, "disks: {a: {labels: {topology.kubernetes.io/zone: z}}, b: {error: quota exceeded}, c: {}}"))
	for disk, want := range map[string]string{"a": "z", "b": "quota exceeded", "c": "", "d": "no such disk"} {
		labels, err := c.GetLabelsForVolume(t.Context(), volume(disk))
		got := labels["topology.kubernetes.io/zone"]
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", disk, got, want)
		}
	}
	slow := New(read(t, "{disks: {a: {}}, latency: 1h}"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := slow.GetLabelsForVolume(ctx, volume("a")); !errors.Is(err, context.Canceled) {
		t.Errorf("a cloud that is slow does not mind its context: %v", err)
	}
}

func TestWhatTheCloudSaysOfNodes(t *testing.T) {
	c := New(read(t, "instances: {node-1: {type: large, zone: z, region: r, address: 192.0.2.1}}"))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	metadata, err := c.InstanceMetadata(t.Context(), node)
	if err != nil || metadata.ProviderID != "sample://node-1" || metadata.Zone != "z" || metadata.NodeAddresses[0].Address != "192.0.2.1" {
		t.Errorf("%+v %v", metadata, err)
	}
	if there, err := c.InstanceExists(t.Context(), node); err != nil || !there {
		t.Errorf("%v %v", there, err)
	}
	node.Name = "node-2"
	if _, err := c.InstanceMetadata(t.Context(), node); !errors.Is(err, cloudprovider.InstanceNotFound) {
		t.Errorf("%v", err)
	}
}

func TestFilesThatAreWrong(t *testing.T) {
	for text, want := range map[string]string{
		"disks: 1":       "cannot unmarshal",
		"disk: {}":       `unknown field "disk"`,
		"{latency: -1s}": "from 0s to 1h",
		"{latency: 1}":   "cannot unmarshal",
		"{instances: {a: {address: b}}, disks: {c: {error: d, labels: {e: f}}}}": `disks[c]: labels and error exclude each other`,
		"{instances: {a: {}}}":         "instances[a].address",
		strings.Repeat("#", maxFile+1): "larger than",
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v; want %q", text, err, want)
		}
	}
}

func TestTheFileOfTheExample(t *testing.T) {
	data, err := os.Open("../cloud.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = data.Close() }()
	file, err := Read(data)
	if err != nil || len(file.Disks) == 0 || len(file.Instances) == 0 {
		t.Errorf("%+v %v", file, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("disks: {a: {labels: {b: c}}}")
	f.Add("{instances: {a: {address: 192.0.2.1}}, latency: 1s}")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		file.Latency.Duration = 0
		c := New(file)
		for disk := range file.Disks {
			if labels, err := c.GetLabelsForVolume(t.Context(), volume(disk)); err != nil && len(labels) > 0 {
				t.Errorf("%q: both labels and an error", disk)
			}
		}
	})
}
