// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/test/lab"
)

const (
	// dayRound is how long a round takes, which stands for half an hour.
	dayRound = 36 * time.Second
	// maxGrowth is by how much of itself a gauge may be larger at the end of the day, or by a few if it counts few.
	maxGrowth, maxAbsolute = 0.05, 3
)

// dayConfigurations come by turns, the last of them invalid. All have certificates that are renewed every 20 s.
var dayConfigurations = func() (texts []string) {
	for _, c := range reloadConfigurations {
		texts = append(texts, c.text+"certificate: {lifetime: 30s, caPropagation: 2s}\n")
	}
	return texts
}()

// gauges are summed over the replicas, since the one that leads needs more than others.
var gauges = []struct {
	name, metric string // without a metric, the number of all
	unit         float64
}{
	{"MiB of memory", "process_resident_memory_bytes", 1 << 20},
	{"MiB of heap until the next collection", "go_memstats_next_gc_bytes", 1 << 20},
	{"goroutines", "go_goroutines", 1},
	{"file descriptors", "process_open_fds", 1},
	{"series", "", 1},
	{"PodDefaults known", "sallyport_poddefaults", 1},
}

// gaugeIn reads a gauge from /metrics.
func gaugeIn(metrics, name string) (float64, error) {
	series := 0
	for line := range strings.Lines(metrics) {
		if value, ok := strings.CutPrefix(line, name+" "); ok && name != "" {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
		if !strings.HasPrefix(line, "#") {
			series++
		}
	}
	if name != "" {
		return 0, fmt.Errorf("there is no metric %s", name)
	}
	return float64(series), nil
}

// day is what happens to three replicas in 24 hours, in rounds of half an hour that take seconds: namespaces with
// PodDefaults come, change and go, with pods that they select; configurations are read anew, leaders and certificates
// change. What a replica takes must not grow from the morning to the night.
func day(ctx context.Context, c *cluster, rounds int, out *result) error {
	mount := filepath.Join(c.dir, "day")
	if err := os.MkdirAll(mount, 0o700); err != nil {
		return err
	}
	file := filepath.Join(mount, "config.yaml")
	if err := writeConfiguration(mount, file, 0, dayConfigurations[0]); err != nil {
		return err
	}
	live, err := c.deploy(ctx, 3, "--config", file)
	if err != nil {
		return err
	}
	s, err := c.startStreamAt(ctx, "pod", typicalPodDefaults, shortRate)
	if err != nil {
		return err
	}
	samples := make([][]float64, len(gauges))
	for round := range rounds {
		ends := time.Now().Add(dayRound)
		if err := c.halfAnHour(ctx, round, mount, file); err != nil {
			return fmt.Errorf("half an hour %d: %w", round, err)
		}
		if !lab.Sleep(ctx, time.Until(ends)) {
			return ctx.Err()
		}
		now, err := look(ctx, live)
		if err != nil {
			return err
		}
		for i, sum := range now {
			samples[i] = append(samples[i], sum)
		}
		c.progress.sayf("  half an hour %d: %s", round, last(samples))
	}
	for i, g := range gauges {
		judgeDay(out, g.name, samples[i])
	}
	out.requireNothingLost(s.stop(ctx, out))
	return c.withdraw(ctx, live)
}

// look reads all gauges.
func look(ctx context.Context, live []*replica) ([]float64, error) {
	sums := make([]float64, len(gauges))
	for _, r := range live {
		metrics, err := lab.Get(ctx, lab.Probes, r.Metrics+"/metrics")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Name, err)
		}
		for i, g := range gauges {
			value, err := gaugeIn(string(metrics), g.metric)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.Name, err)
			}
			sums[i] += value / g.unit
		}
	}
	return sums, nil
}

// halfAnHour makes the changes of a round.
func (c *cluster) halfAnHour(ctx context.Context, round int, mount, file string) error {
	if err := c.openDay(ctx, dayNamespace(round)); err != nil {
		return err
	}
	if round >= 1 {
		if err := c.changeDay(ctx, dayNamespace(round-1)); err != nil {
			return err
		}
	}
	if round >= 2 {
		if err := c.closeDay(ctx, dayNamespace(round-2)); err != nil {
			return err
		}
	}
	if round%2 == 1 {
		if err := writeConfiguration(mount, file, round, dayConfigurations[round/2%len(dayConfigurations)]); err != nil {
			return err
		}
	}
	if round%4 == 3 {
		if err := c.takeLeases(ctx); err != nil {
			return err
		}
	}
	if round%8 == 7 {
		return c.rotate(ctx)
	}
	return nil
}

func dayNamespace(round int) string { return fmt.Sprintf("day-%03d", round) }

// openDay makes a namespace with PodDefaults, and pods that have them.
func (c *cluster) openDay(ctx context.Context, namespace string) error {
	if err := c.createNamespace(ctx, namespace); err != nil {
		return err
	}
	for i := range 10 {
		pd := &v1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("of-%s-%d", namespace, i)}}
		pd.Spec.Selector.MatchLabels = map[string]string{"day": "true"}
		pd.Spec.Env = []corev1.EnvVar{{Name: fmt.Sprintf("DAY_%d", i), Value: namespace}}
		if err := c.objects.Create(ctx, pd); err != nil {
			return err
		}
	}
	for i := range 20 {
		pod := newPod(fmt.Sprintf("pod-%d", i), 0, 1)
		pod.Labels = map[string]string{"day": "true"}
		if _, err := c.clients.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// changeDay changes its PodDefaults, which makes revisions of them.
func (c *cluster) changeDay(ctx context.Context, namespace string) error {
	var all v1alpha1.PodDefaultList
	if err := c.objects.List(ctx, &all, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range all.Items {
		for change := range 5 {
			pd := &all.Items[i]
			if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { // with those who write its status
				if err := c.objects.Get(ctx, client.ObjectKeyFromObject(pd), pd); err != nil {
					return err
				}
				pd.Spec.Env[0].Value = fmt.Sprintf("change %d", change)
				return c.objects.Update(ctx, pd)
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// closeDay removes a namespace with all that is in it, as Kubernetes' controllers do, which are not here.
func (c *cluster) closeDay(ctx context.Context, namespace string) error {
	if err := c.clients.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{}); err != nil {
		return err
	}
	if err := c.clients.CoreV1().Pods(namespace).DeleteCollection(ctx, atOnce, metav1.ListOptions{}); err != nil {
		return err
	}
	if err := c.objects.DeleteAllOf(ctx, &v1alpha1.PodDefault{}, client.InNamespace(namespace)); err != nil {
		return err
	}
	revisions := "/apis/" + sallyportv1alpha1.GroupVersion.String() + "/namespaces/" + namespace + "/" + sallyportv1alpha1.PodDefaultRevisionResource
	if err := c.clients.Discovery().RESTClient().Delete().AbsPath(revisions).Do(ctx).Error(); err != nil {
		return err
	}
	if err := c.clients.CoreV1().ServiceAccounts(namespace).DeleteCollection(ctx, atOnce, metav1.ListOptions{}); err != nil {
		return err
	}
	ns, err := c.clients.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	if err != nil {
		return err
	}
	ns.Spec.Finalizers = nil
	_, err = c.clients.CoreV1().Namespaces().Finalize(ctx, ns, metav1.UpdateOptions{})
	return err
}

// takeLeases takes the leases from whoever holds them, for a second.
func (c *cluster) takeLeases(ctx context.Context) error {
	leases := c.clients.CoordinationV1().Leases(serviceNamespace)
	all, err := leases.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range all.Items {
		name := all.Items[i].Name
		if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { // with the holder, who renews it
			lease, err := leases.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			now := metav1.NowMicro()
			lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.AcquireTime, lease.Spec.RenewTime = new("another-client"), new(int32(1)), &now, &now
			_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// judgeDay compares the second quarter of a day with the last one: by then, replicas have all that they keep.
func judgeDay(out *result, name string, samples []float64) {
	quarter := len(samples) / 4
	if quarter == 0 {
		out.problemf("%s: %d samples are too few", name, len(samples))
		return
	}
	morning, night := medianOf(samples[quarter:2*quarter]), medianOf(samples[len(samples)-quarter:])
	if grown := night - morning; grown > maxGrowth*morning && grown > maxAbsolute {
		out.problemf("%s grow: %.0f in the morning, %.0f at night", name, morning, night)
	}
	out.notef("%s %.0f → %.0f %s", name, morning, night, sparkline(samples))
}

func medianOf(samples []float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[len(sorted)/2]
}

// sparkline draws samples, from zero on.
func sparkline(samples []float64) string {
	bars := []rune("▁▂▃▄▅▆▇█")
	highest := max(slices.Max(samples), 1)
	var out strings.Builder
	for _, s := range samples {
		out.WriteRune(bars[int(s/highest*float64(len(bars)-1))])
	}
	return out.String()
}

// last is the latest sample of each gauge.
func last(samples [][]float64) string {
	var out []string
	for i, g := range gauges {
		out = append(out, fmt.Sprintf("%.0f %s", samples[i][len(samples[i])-1], g.name))
	}
	return strings.Join(out, ", ")
}
