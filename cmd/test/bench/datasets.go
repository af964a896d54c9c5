// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/kinds"
	"github.com/sallyport-io/sallyport/cmd/test/fluid"
)

// datasetsName is sallyport with the dataset webhook.
const datasetsName = "datasets"

// Cases the limits refer to.
const (
	datasetTwo  = "dataset-two"
	datasetNone = "dataset-none"
)

// mountedDatasets are those that the recorded pod mounts.
var mountedDatasets = []string{"imagenet", "models"}

const datasetZone = "eu-west-1a"

// datasetStage is the last. There may be any number of PodDefaults: as many as the stage
// before has.
func datasetStage(p schedule, few int) stage {
	if p.Only == "" {
		few = p.Many
	}
	return stage{
		part:        partDatasets,
		podDefaults: few,
		servers:     []string{floorName, datasetsName},
		prepare:     createDatasets,
		starts:      p.Starts,
		starter:     datasetsName,
		cases: []benchCase{
			{id: datasetTwo, name: "dataset, notebook pod with two datasets", review: "notebook-datasets", path: dataset.Path, edit: drawToDatasets},
			{id: datasetNone, name: "dataset, notebook pod that does not ask", review: "notebook", path: dataset.Path},
		},
	}
}

// mountsDatasets makes the pod ask for its Datasets, and mount them.
func mountsDatasets(pod *unstructured.Unstructured) {
	labels := pod.GetLabels()
	labels[dataset.ServerfulLabel] = "true"
	pod.SetLabels(labels)
	spec := child(pod.Object, "spec")
	container := spec["containers"].([]any)[0].(map[string]any)
	for _, name := range mountedDatasets {
		extend(spec, "volumes", []any{map[string]any{"name": name, "persistentVolumeClaim": map[string]any{"claimName": name}}})
		extend(container, "volumeMounts", []any{map[string]any{"name": name, "mountPath": "/data/" + name}})
	}
}

// drawToDatasets is what the webhook has to do with the default profile.
func drawToDatasets(pod map[string]any) {
	var preferences []any
	prefer := func(weight float64, key, value string) {
		preferences = append(preferences, map[string]any{"weight": weight, "preference": map[string]any{
			"matchExpressions": []any{map[string]any{"key": key, "operator": "In", "values": []any{value}}},
		}})
	}
	spec := child(pod, "spec")
	for _, name := range mountedDatasets {
		prefer(100, "fluid.io/s-"+namespace+"-"+name, "true")
		prefer(50, corev1.LabelTopologyZone, datasetZone)
		mounts := spec["containers"].([]any)[0].(map[string]any)["volumeMounts"].([]any)
		for _, m := range mounts {
			if mount := m.(map[string]any); mount["name"] == name {
				mount["mountPropagation"] = "HostToContainer"
			}
		}
	}
	child(child(spec, "affinity"), "nodeAffinity")["preferredDuringSchedulingIgnoredDuringExecution"] = preferences
	child(child(pod, "metadata"), "annotations")[dataset.InUseAnnotation] = "imagenet,models"
}

// createDatasets installs Fluid's API, and creates Datasets with their runtimes and
// claims, and claims of others.
func createDatasets(ctx context.Context, s *site, p schedule, progress progress) error {
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(types); err != nil {
			return err
		}
	}
	objects, err := client.New(s.cp.config, client.Options{Scheme: types})
	if err != nil {
		return err
	}
	for _, definition := range fluid.Definitions() {
		if err := objects.Create(ctx, definition); err != nil {
			return err
		}
	}
	probe := fluid.Object("VineyardRuntime", namespace, "probe", nil, nil) // the last of them
	if err := poll(ctx, func() error { return objects.Create(ctx, probe.DeepCopy(), client.DryRunAll) }); err != nil {
		return fmt.Errorf("waiting for Fluid's API: %w", err)
	}
	progress.sayf("creating %s Datasets with their runtimes, and %s claims", thousands(p.Datasets), thousands(p.Claims))
	const workers, namespaces, step = 16, 20, 2000
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for i := range p.Claims {
		if i > 0 && i%step == 0 {
			progress.sayf("  %d of %d claims created", i, p.Claims)
		}
		of, name := fmt.Sprintf("team-%d", i%namespaces), fmt.Sprintf("data-%05d", i)
		if i < namespaces {
			team := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: of}}
			if err := objects.Create(ctx, team); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
		}
		switch {
		case i < len(mountedDatasets):
			of, name = namespace, mountedDatasets[i]
		case i == p.Claims-1:
			of, name = namespace, "segmentation-workspace"
		}
		group.Go(func() error { return createDataset(ctx, objects, of, name, i < p.Datasets) })
	}
	return group.Wait()
}

// createDataset creates a claim, and the Dataset behind it if there is one.
func createDataset(ctx context.Context, objects client.Client, namespace, name string, isDataset bool) error {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app.kubernetes.io/name": name}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("100Gi")}},
		},
	}
	all := []client.Object{claim}
	if isDataset {
		claim.Labels["fluid.io/s-"+namespace+"-"+name] = "true"
		all = append(all,
			fluid.Object("AlluxioRuntime", namespace, name, map[string]any{
				"replicas": int64(2), "tieredstore": map[string]any{"levels": []any{map[string]any{"mediumtype": "MEM", "path": "/dev/shm", "quota": "20Gi"}}},
				"fuse": map[string]any{"cleanPolicy": "OnRuntimeDeleted"},
			}, fluid.WorkersIn(corev1.LabelTopologyZone, datasetZone)),
			fluid.Object(kinds.Dataset, namespace, name, map[string]any{
				"mounts": []any{map[string]any{"mountPoint": "s3://bucket/" + name, "name": name}},
			}, fluid.Bound(namespace, name, "alluxio")))
	}
	for _, object := range all {
		if err := objects.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %s/%s: %w", object, namespace, name, err)
		}
	}
	return nil
}
