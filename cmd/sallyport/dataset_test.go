// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
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
	sallyport(t, "config", "check", config).wantError(t, "sallyport.yaml:6", `there is no plugin "Nope"`, `requiredSemantics: Unsupported value: "xor": supported values: "and", "or"`)
}

// TestWhatIsPrintedForAProfileInAConfigMapIsEnough: manifests does not read the profile. It
// grants the permissions that any profile may need, and access to no ConfigMap but the profile.
func TestWhatIsPrintedForAProfileInAConfigMapIsEnough(t *testing.T) {
	config := file(t, "sallyport.yaml", configHead+"webhooks:\n- name: dataset\n  settings:\n    pluginsProfileConfigMap: fluid-system/webhook-plugins\n")
	out := sallyport(t, "manifests", "--config", config, "--service", "sallyport-system/sallyport", "--part", "rbac,workload,configurations", "--image", "i").wantOK(t)
	rules := map[string][]rbacv1.PolicyRule{} // by kind and namespace
	for document := range strings.SplitSeq(out, "\n---\n") {
		var role rbacv1.Role
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		rules[role.Kind+" "+role.Namespace] = append(rules[role.Kind+" "+role.Namespace], role.Rules...)
	}
	if got := rules["Role fluid-system"]; len(got) != 1 || !slices.Equal(got[0].ResourceNames, []string{"webhook-plugins"}) || !slices.Equal(got[0].Verbs, []string{"list", "watch"}) {
		t.Errorf("in the namespace of the ConfigMap it has %+v", got)
	}
	for _, resource := range []string{"persistentvolumes", "daemonsets", "configmaps"} {
		if !slices.ContainsFunc(rules["ClusterRole "], func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, resource) }) {
			t.Errorf("it has no right on %s, which sidecars need", resource)
		}
	}
	wrong := file(t, "wrong.yaml", configHead+"webhooks:\n- name: dataset\n  settings:\n    pluginsProfileConfigMap: webhook-plugins\n")
	sallyport(t, "config", "check", wrong).wantError(t, "wrong.yaml:6", "write NAMESPACE/NAME, such as fluid-system/webhook-plugins")
}

// TestReviewReadsTheProfileOfAConfigMap: the profile comes from a file, like all other objects.
func TestReviewReadsTheProfileOfAConfigMap(t *testing.T) {
	config := file(t, "sallyport.yaml", configHead+"webhooks:\n- name: dataset\n  settings:\n    pluginsProfileConfigMap: fluid-system/webhook-plugins\n")
	args := []string{"review", "-n", "team-a", "-f", "-", "--config", config, "--with", file(t, "cluster.yaml", datasetObjects)}
	if got := sallyportWith(t, datasetPod, args...); got.status != exitError || !strings.Contains(got.stderr, "ConfigMap fluid-system/webhook-plugins is not there: create it, or give it with --with") {
		t.Errorf("status %d, stderr:\n%s", got.status, got.stderr)
	}
	profile := file(t, "profile.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: webhook-plugins, namespace: fluid-system}\ndata: {pluginsProfile: 'plugins: {serverful: {withDataset: [DatasetUsageInjector]}}'}\n")
	if got := sallyportWith(t, datasetPod, append(args, "--with", profile)...); got.status != exitOK || !strings.Contains(got.stdout, "datasets-in-use") || strings.Contains(got.stdout, "nodeAffinity") {
		t.Errorf("status %d, stdout:\n%s\nstderr:\n%s", got.status, got.stdout, got.stderr)
	}
}

// ofRuntime returns a bound Dataset, its runtime of the given type, and the fuse.
func ofRuntime(kind, runtimeType, fuse string) map[string]string {
	return map[string]string{
		"PersistentVolumeClaim team-a/data": `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: team-a, labels: {fluid.io/s-team-a-data: "true"}}, spec: {volumeName: team-a-data}}`,
		"PersistentVolume team-a-data":      `{apiVersion: v1, kind: PersistentVolume, metadata: {name: team-a-data}, spec: {csi: {driver: fuse.csi.fluid.io, volumeHandle: x, volumeAttributes: {fluid_path: /runtime-mnt/x/team-a/data/fuse, mount_type: fuse.x}}}}`,
		"Dataset team-a/data":               `{apiVersion: data.fluid.io/v1alpha1, kind: Dataset, metadata: {name: data, namespace: team-a, uid: 6f1c}, status: {phase: Bound, runtimes: [{type: ` + runtimeType + `, name: data, namespace: team-a}]}}`,
		kind + " team-a/data":               `{apiVersion: data.fluid.io/v1alpha1, kind: ` + kind + `, metadata: {name: data, namespace: team-a}}`,
		"DaemonSet team-a/" + fuse:          `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: ` + fuse + `, namespace: team-a}, spec: {template: {spec: {containers: [{name: fuse, image: fuse:1}]}}}}`,
	}
}

// TestReviewOfAServerlessPodNamesWhatItLacks: given the objects that review reports as missing,
// the pod gets its sidecar with every runtime.
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
				named, command, _ := strings.Cut(named, " was not given: if the cluster has it, add the output of 'kubectl get ")
				if got.status != exitDenied || objects[named] == "" || !strings.Contains(command, " -o yaml' to --with") {
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
