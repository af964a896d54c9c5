// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	nodeName  = "node-1"
	cloudNode = "node.cloudprovider.kubernetes.io/uninitialized"
	// Disks of cloudFile.
	plainDisk, replicatedDisk, lostDisk = "data-1", "replicated-1", "lost-1"
)

var cloudFile = filepath.Join("examples", "cloud-controller-manager", "cloud.yaml")

// cloudSteps show a cloud controller manager that labels volumes.
func (d *demo) cloudSteps(ctx context.Context, assets string) error {
	d.screen.println(d.screen.style(bold, "Sallyport: volume labels from a cloud controller manager, on a real API server"), "\n")
	err := d.step(ctx, "control plane", func(context.Context) (string, error) {
		var err error
		if d.cluster, err = startCluster(assets, d.folder); err != nil {
			return "", err
		}
		version, err := d.cluster.version()
		return "etcd and kube-apiserver " + version, err
	})
	if err != nil {
		return err
	}
	err = d.step(ctx, "start", func(ctx context.Context) (string, error) {
		if err := d.startManager(); err != nil {
			return "", err
		}
		return "sample cloud controller manager at " + d.server.url, d.server.waitReady(ctx)
	})
	if err != nil {
		return err
	}
	err = d.step(ctx, "registered", func(ctx context.Context) (string, error) {
		return "the API server asks it about volumes of its source", poll(ctx, 20*time.Second, "a new volume had labels", func(ctx context.Context) (bool, error) {
			if err := d.server.running(); err != nil {
				return false, err
			}
			pv, err := d.createVolume(ctx, "probe", gceDisk(plainDisk), true)
			return err == nil && len(pv.Labels) > 0, err
		})
	})
	if err != nil {
		return err
	}

	var plain, replicated *corev1.PersistentVolume
	err = d.step(ctx, "create volumes", func(ctx context.Context) (string, error) {
		var err error
		if plain, err = d.createVolume(ctx, "data", gceDisk(plainDisk), false); err != nil {
			return "", err
		}
		replicated, err = d.createVolume(ctx, "replicated", gceDisk(replicatedDisk), false)
		return "of disks " + plainDisk + " and " + replicatedDisk + " in " + cloudFile, err
	})
	if err != nil {
		return err
	}
	for _, pv := range []*corev1.PersistentVolume{plain, replicated} {
		d.title("PersistentVolume " + pv.Name + ", what was added")
		d.showVolume(pv)
	}
	d.title("Checks")
	d.check(plain.Labels[corev1.LabelTopologyZone] == "north-1-a" && plain.Labels[corev1.LabelTopologyRegion] == "north-1", "labels of a disk are on its volume")
	d.check(slices.Equal(zonesOf(plain), []string{"north-1-a"}), "pods with the volume go to nodes of its zone")
	d.check(slices.Equal(zonesOf(replicated), []string{"north-1-a", "north-1-b"}), "a disk in two zones allows nodes of both")
	foreign, err := d.createVolume(ctx, "foreign", corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}}, false)
	if err != nil {
		return err
	}
	d.check(len(foreign.Labels) == 0 && foreign.Spec.NodeAffinity == nil, "a volume of another source is left alone")
	_, err = d.createVolume(ctx, "lost", gceDisk(lostDisk), false)
	d.check(err != nil && strings.Contains(err.Error(), "error querying GCE PD volume "+lostDisk), "a disk that the cloud has lost is refused, and why: %s", message(err))
	return d.checkNode(ctx)
}

// startManager starts the sample with the flags that one has in a cluster.
func (d *demo) startManager() error {
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	s := &server{
		name: "the cloud controller manager", log: filepath.Join(d.folder, "cloud-controller-manager.log"),
		url: "https://127.0.0.1:" + strconv.Itoa(ports[0]), ended: make(chan struct{}),
	}
	if err := s.start(d.command,
		"--cloud-provider=sample", "--cloud-config="+cloudFile, "--kubeconfig="+d.cluster.kubeconfig,
		"--controllers=*", "--configure-cloud-routes=false", "--allocate-node-cidrs=false", "--leader-elect=true",
		"--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(ports[1]),
		"--authentication-kubeconfig="+d.cluster.kubeconfig, "--authorization-kubeconfig="+d.cluster.kubeconfig,
		"--feature-gates=CloudControllerManagerWebhook=true", "--webhooks=*", "--webhook-secure-port="+strconv.Itoa(ports[0]),
		"--webhook-drain-min=0s", "--webhook-drain-timeout=0s",
	); err != nil {
		return err
	}
	d.server = s
	return nil
}

func gceDisk(name string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: name}}
}

func (d *demo) createVolume(ctx context.Context, name string, source corev1.PersistentVolumeSource, dryRun bool) (*corev1.PersistentVolume, error) {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pv.Spec.PersistentVolumeSource = source
	pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
	pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	options := metav1.CreateOptions{FieldManager: "demo"}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return d.cluster.client.CoreV1().PersistentVolumes().Create(ctx, pv, options)
}

// showVolume prints labels and node affinity.
func (d *demo) showVolume(pv *corev1.PersistentVolume) {
	added := func(text string, args ...any) {
		d.screen.println("  ", d.screen.style(green, "+ "+fmt.Sprintf(text, args...)))
	}
	d.screen.println("    metadata:")
	added("  labels:")
	for _, key := range []string{corev1.LabelTopologyRegion, corev1.LabelTopologyZone} {
		added("    %s: %s", key, pv.Labels[key])
	}
	d.screen.println("    spec:")
	added("  nodeAffinity:")
	for _, term := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			added("    %s %s [%s]", e.Key, e.Operator, strings.Join(e.Values, ", "))
		}
	}
}

func zonesOf(pv *corev1.PersistentVolume) []string {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return nil
	}
	for _, term := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			if e.Key == corev1.LabelTopologyZone {
				return e.Values
			}
		}
	}
	return nil
}

// checkNode asks whether the controllers of the same process do their work.
func (d *demo) checkNode(ctx context.Context) error {
	taint := corev1.Taint{Key: cloudNode, Value: "true", Effect: corev1.TaintEffectNoSchedule}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{taint}}}
	if _, err := d.cluster.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return err
	}
	err := poll(ctx, time.Minute, "the node controller had initialised a node", func(ctx context.Context) (bool, error) {
		made, err := d.cluster.client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		return err == nil && made.Labels[corev1.LabelTopologyZone] == "north-1-a" && !slices.Contains(made.Spec.Taints, taint), err
	})
	d.check(err == nil, "the controllers of the same process work: node %s has its zone", nodeName)
	return err
}

func message(err error) string {
	if err == nil {
		return "it is not"
	}
	return err.Error()
}
