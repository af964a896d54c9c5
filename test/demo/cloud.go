// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
	"github.com/sallyport-io/sallyport/test/lab"
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
	err := d.step(ctx, "control plane", func(ctx context.Context) (string, error) {
		var err error
		if d.cluster, err = startCluster(ctx, assets, d.folder); err != nil {
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
		return "sample cloud controller manager at " + d.server.URL, d.server.AwaitReady(ctx, soon)
	})
	if err != nil {
		return err
	}
	err = d.step(ctx, "registered", func(ctx context.Context) (string, error) {
		return "the API server asks it about volumes of its source", d.server.Await(ctx, soon, "a new volume to have labels", func(ctx context.Context) error {
			pv, err := d.createVolume(ctx, "probe", gceDisk(plainDisk), true)
			if err == nil && len(pv.Labels) == 0 {
				err = errors.New("it has none")
			}
			return err
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
	port, err := freeport.Get()
	if err != nil {
		return err
	}
	webhooks, err := freeport.Get()
	if err != nil {
		return err
	}
	url := fmt.Sprintf("https://127.0.0.1:%d", webhooks)
	d.server = &lab.Server{URL: url, Probes: url}
	d.server.Process, err = lab.Start(d.folder, lab.Program{Name: "cloud-controller-manager", Path: d.command, OwnGroup: true, Args: []string{
		"--cloud-provider=sample", "--cloud-config=" + cloudFile, "--kubeconfig=" + d.cluster.Kubeconfig,
		"--controllers=*", "--configure-cloud-routes=false", "--allocate-node-cidrs=false", "--leader-elect=true",
		"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(port),
		"--authentication-kubeconfig=" + d.cluster.Kubeconfig, "--authorization-kubeconfig=" + d.cluster.Kubeconfig,
		"--feature-gates=CloudControllerManagerWebhook=true", "--webhooks=*", "--webhook-secure-port=" + strconv.Itoa(webhooks),
		"--webhook-drain-min=0s", "--webhook-drain-timeout=0s",
	}})
	return err
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
	err := d.server.Await(ctx, time.Minute, "the node controller to initialise a node", func(ctx context.Context) error {
		made, err := d.cluster.client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		if err == nil && (made.Labels[corev1.LabelTopologyZone] != "north-1-a" || slices.Contains(made.Spec.Taints, taint)) {
			err = fmt.Errorf("it has the labels %v and the taints %v", made.Labels, made.Spec.Taints)
		}
		return err
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
