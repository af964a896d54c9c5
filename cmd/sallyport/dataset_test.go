// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/sallyport-io/sallyport/webhooks/dataset"
)

const datasetObjects = `apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: PersistentVolumeClaim
  metadata: {name: imagenet, labels: {fluid.io/s-team-a-imagenet: "true"}}
- apiVersion: data.fluid.io/v1alpha1
  kind: Dataset
  metadata: {name: imagenet, uid: 6f1c}
  status: {phase: Bound, runtimes: [{type: alluxio, name: imagenet, namespace: team-a}]}
- apiVersion: data.fluid.io/v1alpha1
  kind: AlluxioRuntime
  metadata: {name: imagenet}
  spec: {fuse: {nodeSelector: {disk: ssd}}}
  status:
    cacheAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [z1]}]}]
---
apiVersion: v1
kind: Node
metadata: {name: far, labels: {disk: ssd}}
---
apiVersion: v1
kind: Node
metadata: {name: cache, labels: {disk: ssd, topology.kubernetes.io/zone: z1, fluid.io/s-team-a-imagenet: "true"}}
---
apiVersion: v1
kind: Node
metadata: {name: slow, labels: {fluid.io/s-team-a-imagenet: "true"}}
---
apiVersion: v1
kind: Node
metadata: {name: zone, labels: {disk: ssd, topology.kubernetes.io/zone: z1}}
`

const datasetPod = `apiVersion: v1
kind: Pod
metadata: {name: train, labels: {fuse.serverful.fluid.io/inject: "true"}}
spec:
  containers: [{name: app, image: app:1}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: imagenet}}]
`

func TestReviewSaysWhyAPodGoesToItsDatasets(t *testing.T) {
	with := file(t, "cluster.yaml", datasetObjects)
	got := sallyportWith(t, datasetPod, "review", "-n", "team-a", "-f", "-", "--webhooks", "dataset", "--with", with)
	if got.status != exitOK {
		t.Fatalf("status %d, stderr:\n%s", got.status, got.stderr)
	}
	out := got.stdout
	for _, want := range []string{
		"dataset team-a/imagenet: NodeAffinityWithCache: nodes that hold its cache are preferred (weight 100)",
		"dataset team-a/imagenet: RequireNodeWithFuse: nodes that the fuse's node selector selects are required",
		"DatasetUsageInjector: the datasets of the pod", "+    fluid.io/datasets-in-use: imagenet",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	var order []string
	for line := range strings.Lines(got.stderr) {
		if _, rest, ok := strings.Cut(line, "on node "); ok {
			order = append(order, strings.TrimSpace(rest))
		}
	}
	wants := []string{"cache: 150: dataset team-a/imagenet: RequireNodeWithFuse", "zone: 50: ", "far: 0: dataset team-a/imagenet: RequireNodeWithFuse", "slow: cannot run the pod: dataset team-a/imagenet: RequireNodeWithFuse"}
	for i, want := range wants {
		if len(order) != len(wants) || !strings.HasPrefix(order[i], want) {
			t.Fatalf("want %q as line %d of\n%s", want, i, got.stderr)
		}
	}
	nothing := sallyportWith(t, datasetPod, "review", "-n", "team-a", "-f", "-", "--webhooks", "dataset")
	if nothing.status != exitDenied || !strings.Contains(nothing.stderr, "failed to get the following PVCs [imagenet]") {
		t.Errorf("status %d, stderr:\n%s", nothing.status, nothing.stderr)
	}
	nameless := file(t, "nameless.yaml", "apiVersion: data.fluid.io/v1alpha1\nkind: Dataset\nmetadata: {}\n")
	sallyportWith(t, datasetPod, "review", "-f", "-", "--webhooks", "dataset", "--with", nameless).wantError(t, "nameless.yaml:", "the Dataset has no metadata.name")
}

func TestAProfileThatIsWrongIsFoundWithItsPlace(t *testing.T) {
	config := file(t, "sallyport.yaml", configHead+"webhooks:\n- name: dataset\n  settings:\n    pluginsProfile: |\n      plugins: {serverful: {withDataset: [Nope]}}\n    requiredSemantics: xor\n")
	sallyport(t, "config", "check", config).wantError(t, "sallyport.yaml:6", `there is no plugin "Nope"`, `requiredSemantics: "xor": choose and or or`)
}

// TestAProfileInAFileOfItsOwnIsFollowed is that a change of the ConfigMap counts without
// one of the configuration. It cannot count in the end, as no API server answers.
func TestAProfileInAFileOfItsOwnIsFollowed(t *testing.T) {
	profile := file(t, "plugins.profile", dataset.DefaultProfile)
	r := startLive(t, "webhooks: [{name: dataset, settings: {pluginsProfileFile: '"+profile+"'}}]\n")
	write := func(text string) {
		t.Helper()
		next := filepath.Join(filepath.Dir(profile), "next")
		if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, profile); err != nil {
			t.Fatal(err)
		}
	}
	write("plugins: {serverful: {withDataset: [Nope]}}")
	r.failed(1)
	write("plugins: {serverful: {withDataset: [DatasetUsageInjector]}}")
	deadline := time.After(30 * time.Second)
	for !strings.Contains(r.components["config"].Detail(), "waits for what it needs: not all of PersistentVolumeClaim, Dataset") {
		select {
		case <-deadline:
			t.Fatalf("the detail is %q", r.components["config"].Detail())
		case <-time.After(time.Millisecond):
		}
	}
	if got := testutil.ToFloat64(r.reloads.WithLabelValues("failure")); got != 1 {
		t.Errorf("%v changes were not good", got)
	}
	if err := os.Remove(profile); err != nil {
		t.Fatal(err)
	}
	r.failed(2)
}

func TestPluginsAreCountedByOutcome(t *testing.T) {
	metrics := prometheus.NewRegistry()
	observe, err := observePlugins(metrics)
	if err != nil {
		t.Fatal(err)
	}
	observe("FuseSidecar", dataset.OutcomeRefused)
	if n, err := testutil.GatherAndCount(metrics, "sallyport_dataset_plugins_total"); err != nil || n != len(dataset.PluginNames())*len(dataset.Outcomes()) {
		t.Errorf("%d series, %v", n, err)
	}
	all, err := metrics.Gather()
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	total := 0.0
	for _, metric := range all[0].GetMetric() {
		total += metric.GetCounter().GetValue()
	}
	if total != 1 {
		t.Errorf("%v pods were counted", total)
	}
}

// ofRuntime are the objects of a bound Dataset with a runtime of that type, and its fuse.
func ofRuntime(kind, runtimeType, fuse string) map[string]string {
	return map[string]string{
		"PersistentVolumeClaim team-a/data": `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: team-a, labels: {fluid.io/s-team-a-data: "true"}}, spec: {volumeName: team-a-data}}`,
		"PersistentVolume team-a-data":      `{apiVersion: v1, kind: PersistentVolume, metadata: {name: team-a-data}, spec: {csi: {driver: fuse.csi.fluid.io, volumeHandle: x, volumeAttributes: {fluid_path: /runtime-mnt/x/team-a/data/fuse, mount_type: fuse.x}}}}`,
		"Dataset team-a/data":               `{apiVersion: data.fluid.io/v1alpha1, kind: Dataset, metadata: {name: data, namespace: team-a, uid: 6f1c}, status: {phase: Bound, runtimes: [{type: ` + runtimeType + `, name: data, namespace: team-a}]}}`,
		kind + " team-a/data":               `{apiVersion: data.fluid.io/v1alpha1, kind: ` + kind + `, metadata: {name: data, namespace: team-a}}`,
		"DaemonSet team-a/" + fuse:          `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: ` + fuse + `, namespace: team-a}, spec: {template: {spec: {containers: [{name: fuse, image: fuse:1}]}}}}`,
	}
}

// TestReviewOfAServerlessPodNamesWhatItLacks is that with the objects that review names the
// pod gets its sidecar, whatever the runtime.
func TestReviewOfAServerlessPodNamesWhatItLacks(t *testing.T) {
	pod := strings.Replace(datasetPod, "fuse.serverful.fluid.io/inject", "serverless.fluid.io/inject", 1)
	pod = strings.Replace(pod, "claimName: imagenet", "claimName: data", 1)
	pod = strings.Replace(pod, "image: app:1}", "image: app:1, volumeMounts: [{name: data, mountPath: /data}]}", 1)
	for kind, of := range map[string]struct{ runtimeType, fuse string }{
		"AlluxioRuntime": {"alluxio", "data-fuse"}, "JindoRuntime": {"jindo", "data-jindofs-fuse"}, "JuiceFSRuntime": {"juicefs", "data-fuse"},
		"ThinRuntime": {"thin", "data-fuse"}, "EFCRuntime": {"efc", "data-fuse"}, "VineyardRuntime": {"vineyard", "data-fuse"}, "CacheRuntime": {"cache", "data-client"},
	} {
		t.Run(kind, func(t *testing.T) {
			objects := ofRuntime(kind, of.runtimeType, of.fuse)
			folder := t.TempDir()
			for range len(objects) {
				args := []string{"review", "-n", "team-a", "-f", "-", "--webhooks", "dataset"}
				if names, _ := os.ReadDir(folder); len(names) > 0 {
					args = append(args, "--with", folder)
				}
				got := sallyportWith(t, pod, args...)
				_, named, _ := strings.Cut(got.stderr, "note: Pod train: ")
				named, command, _ := strings.Cut(named, " was not given: if the cluster has it, add to --with what 'kubectl get ")
				if got.status != exitDenied || objects[named] == "" || !strings.Contains(command, " -o yaml' prints") {
					t.Fatalf("status %d, it names %q:\n%s", got.status, named, got.stderr)
				}
				name := filepath.Join(folder, strings.NewReplacer(" ", "-", "/", "-").Replace(named)+".yaml")
				if err := os.WriteFile(name, []byte(objects[named]), 0o600); err != nil {
					t.Fatal(err)
				}
				delete(objects, named)
			}
			out := sallyportWith(t, pod, "review", "-n", "team-a", "-f", "-", "--webhooks", "dataset", "--with", folder)
			if out.status != exitOK || !strings.Contains(out.stdout, "FuseSidecar") || strings.Contains(out.stderr, "was not given") {
				t.Errorf("status %d:\n%s%s", out.status, out.stdout, out.stderr)
			}
		})
	}
}
