// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/kinds"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/live"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/scripts"
	"github.com/sallyport-io/sallyport/cmd/test/fluid"
)

func clientKey(object client.Object) client.ObjectKey { return client.ObjectKeyFromObject(object) }

// TestDatasets runs everything against one API server, with one server and one scheduler.
func TestDatasets(t *testing.T) {
	c := startCluster(t)
	watcher := c.watch(t)
	c.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fluid-system"}})
	c.create(t, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fluid-system", Name: "webhook-plugins"}, Data: map[string]string{"pluginsProfile": dataset.DefaultProfile},
	})
	c.startServer(t, "webhooks: [{name: dataset, timeoutSeconds: 15, settings: {pluginsProfileConfigMap: fluid-system/webhook-plugins}}]\n")
	c.startScheduling(t)
	zone := func(zone, region string, more ...string) map[string]string {
		labels := map[string]string{corev1.LabelTopologyZone: zone, corev1.LabelTopologyRegion: region}
		for _, key := range more {
			labels[key] = "true"
		}
		return labels
	}
	c.node(t, "cache-1", zone("z1", "r1", "fluid.io/s-team-a-imagenet", "fluid.io/s-alluxio-team-a-imagenet", "fluid.io/dataset-num"))
	c.node(t, "cache-2", zone("z1", "r1", "fluid.io/s-team-a-imagenet", "fluid.io/s-team-a-other", "fluid.io/dataset-num"))
	c.node(t, "near", zone("z1", "r1"))
	c.node(t, "region", zone("z2", "r1"))
	c.node(t, "far", zone("z9", "r9"))
	c.namespace(t, "team-a")
	c.dataset(t, "team-a", "imagenet", "AlluxioRuntime", "alluxio")
	c.dataset(t, "team-a", "other", "JindoRuntime", "jindo")
	for _, test := range []struct {
		name string
		run  func(*testing.T, *cluster)
	}{
		{"pods land where their dataset is cached", testPreferred},
		{"pods without a dataset avoid nodes with cache", testAvoid},
		{"why a pod is where it is can be asked", testExplained},
		{"with the cache full, pods land in its zone, its region, and elsewhere", testTiers},
		{"a pod that requires its dataset waits for nodes with cache", testRequired},
		{"a pod that requires two datasets lands where both are cached", testBoth},
		{"a dataset that is there a moment ago is found", testLag},
		{"what is wrong is told to the author", testRefusals},
		{"sidecars are admitted, and what they need is there", testSidecars},
		{"plugins are counted", testMetrics},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
	t.Run("a kind whose definition comes later is followed, and one that goes is forgotten", func(t *testing.T) { testDefinitions(t, c, watcher) })
}

// watch follows datasets in this process.
func (c *cluster) watch(t *testing.T) *live.Watcher {
	t.Helper()
	watcher, err := live.Watch(c.config, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watcher.Find(t.Context(), dataset.Ref{Kind: kinds.Dataset, Name: "a"}, false); err == nil {
		t.Error("it answers before anything was read")
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- watcher.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	eventually(t, "the watcher to be ready", func(context.Context) (bool, error) { err := watcher.Ready(); return err == nil, err })
	return watcher
}

func (c *cluster) pods(t *testing.T, prefix string, n int, claims ...string) []*corev1.Pod {
	t.Helper()
	var out []*corev1.Pod
	for i := range n {
		p := pod("team-a", fmt.Sprintf("%s-%d", prefix, i), claims...)
		c.create(t, p)
		out = append(out, p)
	}
	return out
}

func only(t *testing.T, places map[string]int, nodes ...string) {
	t.Helper()
	for node, n := range places {
		if !slices.Contains(nodes, node) {
			t.Errorf("%d pods landed on %s: %v", n, node, places)
		}
	}
}

func testPreferred(t *testing.T, c *cluster) {
	pods := c.pods(t, "preferred", 8, "imagenet")
	only(t, c.places(t, pods...), "cache-1", "cache-2")
	if got := pods[0].Annotations[dataset.InUseAnnotation]; got != "imagenet" {
		t.Errorf("the datasets in use are %q", got)
	}
	if mount := pods[0].Spec.Containers[0].VolumeMounts[0]; mount.MountPropagation == nil || *mount.MountPropagation != corev1.MountPropagationHostToContainer {
		t.Errorf("the mount is %+v", mount)
	}
	if terms := pods[0].Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution; len(terms) != 3 {
		t.Errorf("it has %d preferences: %+v", len(terms), terms)
	}
}

func testAvoid(t *testing.T, c *cluster) {
	only(t, c.places(t, c.pods(t, "plain", 8)...), "near", "region", "far")
}

func testTiers(t *testing.T, c *cluster) {
	var cordoned []string
	defer func() { c.cordon(t, false, cordoned...) }()
	for i, tier := range []struct {
		full []string
		want string
	}{{[]string{"cache-1", "cache-2"}, "near"}, {[]string{"near"}, "region"}, {[]string{"region"}, "far"}} {
		c.cordon(t, true, tier.full...)
		cordoned = append(cordoned, tier.full...)
		only(t, c.places(t, c.pods(t, fmt.Sprintf("tier-%d", i), 4, "imagenet")...), tier.want)
	}
}

func testRequired(t *testing.T, c *cluster) {
	c.cordon(t, true, "cache-1", "cache-2")
	p := pod("team-a", "required", "imagenet")
	p.Labels["fluid.io/dataset.imagenet.sched"] = "required"
	c.create(t, p)
	eventually(t, "the pod to have no place", func(ctx context.Context) (bool, error) {
		err := c.client.Get(ctx, clientKey(p), p)
		return err == nil && unschedulable(p), err
	})
	c.cordon(t, false, "cache-1", "cache-2")
	only(t, c.places(t, p), "cache-1", "cache-2")
}

func testBoth(t *testing.T, c *cluster) {
	for i := range 4 {
		p := pod("team-a", fmt.Sprintf("both-%d", i), "imagenet", "other")
		p.Labels["fluid.io/dataset.imagenet.sched"] = "required"
		p.Labels["fluid.io/dataset.other.sched"] = "required"
		c.create(t, p)
		only(t, c.places(t, p), "cache-2")
	}
}

// testLag creates a pod in the very moment in which its dataset is there.
func testLag(t *testing.T, c *cluster) {
	for i := range 5 {
		name := fmt.Sprintf("new-%d", i)
		c.dataset(t, "team-a", name, "ThinRuntime", "thin")
		p := pod("team-a", name, name)
		c.create(t, p)
		if p.Annotations[dataset.InUseAnnotation] != name {
			t.Errorf("the pod has %v", p.Annotations)
		}
	}
}

func testRefusals(t *testing.T, c *cluster) {
	c.create(t, fluid.Object(kinds.Dataset, "team-a", "unbound", nil, map[string]any{"phase": "NotBound"}))
	c.claim(t, "team-a", "unbound")
	c.create(t, fluid.Object(kinds.Dataset, "team-a", "cached", nil, fluid.Bound("team-a", "cached", "cache")))
	c.claim(t, "team-a", "cached")
	for claim, want := range map[string]string{
		"unbound":      `dataset "team-a/unbound" not bound`,
		"cached":       "the CustomResourceDefinition cacheruntimes.data.fluid.io is not installed",
		"gone":         "failed to get the following PVCs [gone] in namespace team-a",
		"../../secret": "failed to get the following PVCs [../../secret]",
	} {
		p := pod("team-a", "refused", claim)
		if strings.Contains(claim, "/") {
			p.Spec.Volumes[0].Name, p.Spec.Containers[0].VolumeMounts[0].Name = "v", "v"
		}
		if err := c.client.Create(t.Context(), p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func testSidecars(t *testing.T, c *cluster) {
	c.dataset(t, "team-a", "serverless", "JuiceFSRuntime", "juicefs")
	labels := map[string]string{"app": "fuse"}
	c.create(t, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "serverless-fuse"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "fuse", Image: "fuse:1", VolumeMounts: []corev1.VolumeMount{{Name: "juicefs-fuse-mount", MountPath: "/runtime-mnt"}}}},
				Volumes:    []corev1.Volume{{Name: "juicefs-fuse-mount", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/runtime-mnt"}}}},
			}},
		},
	})
	p := pod("team-a", "serverless", "serverless")
	p.Labels = map[string]string{dataset.ServerlessLabel: "true"}
	p.Spec.InitContainers = []corev1.Container{{Name: "prepare", Image: "app:1", VolumeMounts: []corev1.VolumeMount{{Name: "serverless", MountPath: "/data"}}}}
	dry := p.DeepCopy()
	if err := c.client.Create(t.Context(), dry, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	c.create(t, p)
	if names := containerNames(p.Spec.Containers); !slices.Equal(names, []string{"fluid-fuse-0", "app"}) || p.Labels[dataset.DoneLabel] != "true" {
		t.Errorf("the containers are %v, the labels %v", names, p.Labels)
	}
	if names := containerNames(p.Spec.InitContainers); !slices.Equal(names, []string{"init-fluid-fuse-0", "prepare"}) {
		t.Errorf("the init containers are %v", names)
	}
	made := &corev1.ConfigMap{}
	eventually(t, "the scripts of sidecars", func(ctx context.Context) (bool, error) {
		err := c.client.Get(ctx, client.ObjectKey{Namespace: "team-a", Name: scripts.Name()}, made)
		return err == nil, err
	})
	if !slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.ConfigMap != nil && v.ConfigMap.Name == made.Name }) {
		t.Errorf("the volumes are %+v", p.Spec.Volumes)
	}
}

func containerNames(list []corev1.Container) []string {
	var out []string
	for i := range list {
		out = append(out, list[i].Name)
	}
	return out
}

func testMetrics(t *testing.T, c *cluster) {
	text, err := c.get(t.Context(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`sallyport_dataset_plugins_total{outcome="changed",plugin="NodeAffinityWithCache"} `, `sallyport_dataset_plugins_total{outcome="changed",plugin="PreferNodesWithoutCache"} 8`,
		`sallyport_dataset_plugins_total{outcome="changed",plugin="FuseSidecar"} 2`, `sallyport_dataset_plugins_total{outcome="error",plugin="FuseSidecar"} 0`, "sallyport_datasets ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s", want)
		}
	}
}

func testDefinitions(t *testing.T, c *cluster, watcher *live.Watcher) {
	ref := dataset.Ref{Kind: "CacheRuntime", Namespace: "team-a", Name: "cached"}
	for _, fresh := range []bool{false, true} {
		if _, err := watcher.Find(t.Context(), ref, fresh); !errors.Is(err, dataset.ErrNotInstalled) {
			t.Errorf("fresh %v: a runtime without definition: %v", fresh, err)
		}
	}
	crd := fluid.Definition(ref.Kind)
	c.install(t, crd)
	c.create(t, fluid.Object(ref.Kind, "team-a", "cached", map[string]any{"client": map[string]any{}}, nil))
	p := pod("team-a", "cached", "cached")
	c.create(t, p) // by a read afresh, whether the kind is followed already or not
	eventually(t, "the runtime to be followed", func(ctx context.Context) (bool, error) {
		found, err := watcher.Find(ctx, ref, false)
		return found != nil, err
	})
	missing, err := watcher.Find(t.Context(), dataset.Ref{Kind: "CacheRuntime", Namespace: "team-a", Name: "missing"}, true)
	if err != nil || missing != nil {
		t.Errorf("one that is not there: %+v, %v", missing, err)
	}
	if err := c.client.Delete(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the runtime to be forgotten", func(ctx context.Context) (bool, error) {
		_, err := watcher.Find(ctx, ref, false)
		if errors.Is(err, dataset.ErrNotInstalled) {
			return true, nil
		}
		return false, err
	})
	if err := watcher.Ready(); err != nil {
		t.Errorf("it is not ready any more: %v", err)
	}
}

// install installs a definition and waits until it is served.
func (c *cluster) install(t *testing.T, crd client.Object) {
	t.Helper()
	c.create(t, crd)
	probe := fluid.Object("CacheRuntime", "team-a", "probe", nil, nil)
	eventually(t, "the definition to be served", func(ctx context.Context) (bool, error) {
		err := c.client.Create(ctx, probe.DeepCopy(), client.DryRunAll)
		return err == nil, err
	})
}
