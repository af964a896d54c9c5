// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/test/lab"
)

// leaderName is sallyport with the controllers of PodDefaults, which it runs as the leader.
const leaderName = "leader"

// Cases the limits refer to.
const scaleOneMatch = "scale-one-match"

// A scale is how many objects a large cluster has. PodDefaults are shared out evenly among its
// namespaces, besides those of the namespace that pods are reviewed for.
type scale struct {
	Namespaces         int `json:"namespaces"`
	PodDefaults        int `json:"podDefaults"`
	ClusterPodDefaults int `json:"clusterPodDefaults"`
	Pods               int `json:"pods"`
}

// scaleOf is the cluster with so many PodDefaults: 50 in a namespace, which has 75 pods.
func scaleOf(podDefaults int) scale {
	return scale{Namespaces: podDefaults / 50, PodDefaults: podDefaults, ClusterPodDefaults: podDefaults / 100, Pods: podDefaults / 2 * 3}
}

// scaled is what was measured with them.
type scaled struct {
	scale
	// StartSeconds is the median of Starts, from the start of the process to ready.
	StartSeconds    float64   `json:"startSeconds"`
	Starts          []float64 `json:"starts"`
	StartPeakRSSMiB float64   `json:"startPeakRSSMiB"`
	IdleRSSMiB      float64   `json:"idleRSSMiB"` // some seconds after the start
	// IdleRequestsPerSecond are those to the API server until then, without watches, of it and of all that is there.
	IdleRequestsPerSecond float64 `json:"idleRequestsPerSecond"`
	// LeaderPeakRSSMiB and LeaderCPUSeconds are of a replica that has led for LeaderSeconds.
	LeaderSeconds    float64    `json:"leaderSeconds"`
	LeaderPeakRSSMiB float64    `json:"leaderPeakRSSMiB"`
	LeaderCPUSeconds float64    `json:"leaderCPUSeconds"`
	Caches           []cacheRun `json:"caches"`
	Conflicts        conflicts  `json:"conflicts"`
	Changes          changed    `json:"changes"`
	Drift            drifted    `json:"drift"`
	// LeaderWithPodsRSSMiB is the peak of a replica that leads while there are pods.
	LeaderWithPodsRSSMiB float64 `json:"leaderWithPodsRSSMiB"`
	Console              opened  `json:"console"`
	Storm                stormed `json:"storm"`
}

// perNamespace is how many PodDefaults the namespace has that pods are reviewed for.
const perNamespace = 50

// scaleStage is a cluster as large as any. The leader has just started when it is measured, and
// catches up.
func scaleStage(injected string) stage {
	return stage{
		part:        partScale,
		podDefaults: perNamespace,
		servers:     []string{floorName, sallyportName, leaderName},
		prepare:     fillScale,
		scale:       true,
		cases: []benchCase{
			{id: scaleOneMatch, name: "minimal pod, 1 of 50 in the namespace matches, many more elsewhere", review: "minimal-selecting", path: podDefaultPath, adds: []string{injected}},
		},
	}
}

// fillScale writes the objects of a large cluster.
func fillScale(ctx context.Context, s *site, p schedule, progress progress) (err error) {
	progress.sayf("creating %s namespaces", thousands(p.Scale.Namespaces))
	group, creating := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range p.Scale.Namespaces {
		group.Go(func() error {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: scaleNamespace(i), Labels: map[string]string{"app.kubernetes.io/part-of": "kubeflow-profile"}}}
			_, err := s.cp.clients.CoreV1().Namespaces().Create(creating, ns, metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	all, err := typicalPodDefaults()
	if err != nil {
		return err
	}
	podDefault := all[1].DeepCopy()
	podDefault.Namespace, podDefault.Name = scaleNamespace(0), "team-00000"
	clusterWide := &sallyportv1alpha1.ClusterPodDefault{ObjectMeta: metav1.ObjectMeta{Name: "cluster-00000"}}
	clusterWide.Spec.Env = []corev1.EnvVar{{Name: "CLUSTER", Value: "one"}}
	clusterWide.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{"use-cluster-00000": "true"}}
	etcd, err := s.etcd()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, etcd.Close()) }()

	progress.sayf("writing %s PodDefaults and %s ClusterPodDefaults to etcd", thousands(p.Scale.PodDefaults), thousands(p.Scale.ClusterPodDefaults))
	if err := s.multiply(ctx, etcd, podDefault, p.Scale.PodDefaults, func(i int, object map[string]any) string {
		name, in := fmt.Sprintf("team-%05d", i), scaleNamespace(i%p.Scale.Namespaces)
		object["metadata"].(map[string]any)["namespace"] = in
		rename(object, name)
		if i < p.Scale.Namespaces && p.Scale.conflicts(i) {
			object["spec"].(map[string]any)["env"].([]any)[0].(map[string]any)["value"] = "another"
		}
		return "/" + in + "/" + name
	}); err != nil {
		return err
	}
	return s.multiply(ctx, etcd, clusterWide, p.Scale.ClusterPodDefaults, func(i int, object map[string]any) string {
		name := fmt.Sprintf("cluster-%05d", i)
		rename(object, name)
		return "/" + name
	})
}

func scaleNamespace(i int) string { return fmt.Sprintf("scale-%04d", i) }

// rename gives an object a name, and the label by which pods ask for it.
func rename(object map[string]any, name string) {
	meta := object["metadata"].(map[string]any)
	meta["name"], meta["uid"] = name, string(uuid.NewUUID())
	object["spec"].(map[string]any)["selector"] = map[string]any{"matchLabels": map[string]any{"use-" + name: "true"}}
}

// multiply creates an object through the API server, and writes as many as n copies of it to etcd, the
// first in its own place. Change makes the copy with a number, and returns the end of its key.
func (s *site) multiply(ctx context.Context, etcd *clientv3.Client, template client.Object, n int, change func(i int, object map[string]any) string) error {
	objects, err := client.New(s.cp.config, client.Options{Scheme: podDefaultScheme()})
	if err != nil {
		return err
	}
	if err := objects.Create(ctx, template); err != nil {
		return err
	}
	suffix := "/" + template.GetName()
	if template.GetNamespace() != "" {
		suffix = "/" + template.GetNamespace() + suffix
	}
	found, err := etcd.Get(ctx, "/registry/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return err
	}
	prefix := ""
	for _, kv := range found.Kvs {
		if before, ok := strings.CutSuffix(string(kv.Key), suffix); ok {
			prefix = before
		}
	}
	stored, err := etcd.Get(ctx, prefix+suffix)
	if err != nil || len(stored.Kvs) != 1 {
		return fmt.Errorf("etcd has %d objects at %s%s: %w", len(stored.Kvs), prefix, suffix, err)
	}
	puts := &batch{etcd: etcd}
	for i := range n {
		var object map[string]any
		if err := json.Unmarshal(stored.Kvs[0].Value, &object); err != nil {
			return err
		}
		key := prefix + change(i, object)
		value, err := json.Marshal(object)
		if err != nil {
			return err
		}
		if err := puts.putBytes(ctx, key, string(value)); err != nil {
			return err
		}
	}
	return puts.commit(ctx)
}

// podDefaultScheme has the kinds of PodDefaults, and of what belongs to them.
func podDefaultScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	_ = v1alpha1.AddToScheme(scheme) // neither can fail for a new scheme
	_ = sallyportv1alpha1.AddToScheme(scheme)
	return scheme
}

// measureScale measures what no review costs: starts, a leader, and caches side by side.
func (s *site) measureScale(ctx context.Context, p schedule, progress progress) (*scaled, error) {
	out := &scaled{scale: p.Scale, LeaderSeconds: p.Leads.Seconds()}
	progress.sayf("starting %s, %d times", sallyportName, p.Starts)
	for i := range p.Starts {
		err := s.with(ctx, sallyportName, func(srv *server) error {
			out.Starts = append(out.Starts, srv.ready.Seconds())
			if i == 0 {
				before, err := s.requests(ctx)
				if err != nil {
					return err
				}
				if !lab.Sleep(ctx, p.Idle) {
					return ctx.Err()
				}
				after, err := s.requests(ctx)
				if err != nil {
					return err
				}
				out.IdleRequestsPerSecond = float64(after-before) / p.Idle.Seconds()
			}
			peak, err := peakRSS(srv.PID())
			now, errNow := currentRSS(srv.PID())
			out.StartPeakRSSMiB = max(out.StartPeakRSSMiB, mebibytes(peak))
			if i == 0 {
				out.IdleRSSMiB = mebibytes(now)
			}
			return errors.Join(err, errNow)
		})
		if err != nil {
			return nil, err
		}
	}
	out.StartSeconds = median(out.Starts)
	progress.sayf("a replica leads for %s", p.Leads)
	started := time.Now()
	err := s.with(ctx, leaderName, func(srv *server) error {
		known, err := s.awaitConflicts(ctx, p.Scale.conflictObjects(), started, 5*time.Minute)
		if err != nil {
			return err
		}
		out.Conflicts = known
		if !lab.Sleep(ctx, p.Leads-time.Since(started)) {
			return ctx.Err()
		}
		peak, err := peakRSS(srv.PID())
		used, errUsed := cpuTime(srv.PID())
		out.LeaderPeakRSSMiB, out.LeaderCPUSeconds = mebibytes(peak), used.Seconds()
		return errors.Join(err, errUsed)
	})
	if err != nil {
		return nil, err
	}
	for round := range p.Starts {
		for i := range caches {
			kind := caches[(round+i)%len(caches)]
			run, err := s.fillCache(ctx, kind)
			if err != nil {
				return nil, fmt.Errorf("reading all PodDefaults into %s: %w", kind, err)
			}
			out.Caches = append(out.Caches, run)
		}
	}
	return out, s.measureLive(ctx, p, out, progress)
}

// measureLive measures what happens in a cluster that lives: changes, pods, people who look, restarts.
func (s *site) measureLive(ctx context.Context, p schedule, out *scaled, progress progress) (err error) {
	progress.sayf("changing PodDefaults, %d a second and one that is looked for", changesPerSecond)
	if out.Changes, err = s.measureChanges(ctx, p); err != nil {
		return err
	}
	if err := s.fillPods(ctx, p, progress); err != nil {
		return err
	}
	progress.sayf("counting drift")
	if out.Drift, err = s.measureDrift(ctx); err != nil {
		return err
	}
	progress.sayf("a replica leads for %s beside the pods", p.Leads)
	if err := s.with(ctx, leaderName, func(srv *server) error {
		if !lab.Sleep(ctx, p.Leads) {
			return ctx.Err()
		}
		peak, err := peakRSS(srv.PID())
		out.LeaderWithPodsRSSMiB = mebibytes(peak)
		return err
	}); err != nil {
		return err
	}
	progress.sayf("opening the console, and restarting the API server")
	if out.Console, err = s.measureConsole(ctx); err != nil {
		return err
	}
	out.Storm, err = s.measureStorm(ctx, p)
	return err
}

// with starts a server, and stops it after use.
func (s *site) with(ctx context.Context, name string, use func(*server) error) error {
	srv, err := s.start(ctx, name)
	if err != nil {
		return err
	}
	defer srv.stop()
	return use(srv)
}

func writeScale(out *strings.Builder, s *scaled) {
	fmt.Fprintf(out, "\n%s PodDefaults in %s namespaces, %s ClusterPodDefaults\n", thousands(s.PodDefaults), thousands(s.Namespaces), thousands(s.ClusterPodDefaults))
	const line = "  %-44s %10.2f %13.0f\n"
	fmt.Fprintf(out, "  %-44s %10s %13s\n", "", "s", "RSS MiB")
	fmt.Fprintf(out, line, "from its start to ready, the most of memory", s.StartSeconds, s.StartPeakRSSMiB)
	fmt.Fprintf(out, "  %-44s %10s %13.0f\n", "some seconds later", "", s.IdleRSSMiB)
	fmt.Fprintf(out, "  %-44s %10.1f\n", "requests a second in between, without watches", s.IdleRequestsPerSecond)
	fmt.Fprintf(out, line, fmt.Sprintf("CPU of a leader of %.0f s, the most of memory", s.LeaderSeconds), s.LeaderCPUSeconds, s.LeaderPeakRSSMiB)
	fmt.Fprintf(out, "  %-44s %10s %13s %10s %10s\n", "the same objects read into", "s", "RSS MiB", "live MiB", "CPU s")
	for _, kind := range caches {
		c := s.cache(kind)
		fmt.Fprintf(out, "  %-44s %10.2f %13.0f %10.0f %10.2f\n", kind, c.Seconds, c.PeakRSSMiB, c.LiveMiB, c.CPUSeconds)
	}
	writeScaleLive(out, s)
}
