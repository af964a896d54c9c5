// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// creators is how many clients create pods at one time.
const creators = 6

// writers is how many do in a burst, as a controller with many workers.
const writers = 64

// measureCreations creates so many notebook pods in a turn through the API server: with
// no webhook, and with each of the targets registered. Turns alternate.
func measureCreations(ctx context.Context, p schedule, site *site, targets []target, c benchCase, pods, clients int) ([]creation, error) {
	pod, err := parsePod(notebookPodYAML, selecting)
	if err != nil {
		return nil, err
	}
	type tally struct {
		creation
		latencies []time.Duration
	}
	tallies := make([]tally, 1+len(targets)) // the first is without a webhook
	for i, t := range targets {
		tallies[i+1].Server = t.Name
		if tallies[i+1].Protocol, err = site.protocol(ctx, t.server); err != nil {
			return nil, err
		}
	}
	for range p.CreateTurns {
		for i := range tallies {
			var r *registration
			if i > 0 {
				r = site.registration(targets[i-1], c.path)
			}
			elapsed, latencies, err := site.cp.createPods(ctx, pod, pods, clients, r, c.adds[0], r.injects())
			if err != nil {
				return nil, fmt.Errorf("creating pods with webhook %q: %w", tallies[i].Server, err)
			}
			tallies[i].Pods += len(latencies)
			tallies[i].Rates = append(tallies[i].Rates, float64(len(latencies))/elapsed.Seconds())
			tallies[i].latencies = append(tallies[i].latencies, latencies...)
		}
	}
	creations := make([]creation, 0, len(tallies))
	for _, t := range tallies {
		t.CreatesPerSecond = median(t.Rates)
		t.P50Millis = millis(percentile(t.latencies, 50))
		t.P99Millis = millis(percentile(t.latencies, 99))
		creations = append(creations, t.creation)
	}
	return creations, nil
}

// registration makes the API server call a target. The floor's answer has no
// UID, which only v1beta1 lets pass.
func (s *site) registration(t target, path string) *registration {
	r := &registration{
		name:           t.Name + ".bench.sallyport.io",
		url:            t.server.url + path,
		caBundle:       s.certificate,
		reviewVersions: []string{"v1"},
	}
	if t.Name == floorName {
		r.reviewVersions = []string{"v1beta1"}
	}
	return r
}

// injects says whether the webhook marks pods: those of the floor do not, nor does none.
func (r *registration) injects() bool { return r != nil && r.reviewVersions[0] == "v1" }

// createPods has clients create n pods, checks that each went through the webhook (nil: no
// webhook) and came back with the mark of the PodDefault, or without it, and deletes
// them again.
func (cp *controlPlane) createPods(ctx context.Context, pod *corev1.Pod, n, clients int, r *registration, podDefault string, marked bool) (elapsed time.Duration, latencies []time.Duration, err error) {
	callsBefore := 0
	if r != nil {
		if err := cp.register(ctx, *r); err != nil {
			return 0, nil, err
		}
		if callsBefore, err = cp.calls(ctx, r.name); err != nil {
			return 0, nil, err
		}
	}

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	latencies = make([]time.Duration, n)
	var next atomic.Int64
	var group sync.WaitGroup
	started := time.Now()
	for range clients {
		group.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				latency, err := cp.createPod(ctx, pod, i, podDefault, marked)
				if err != nil {
					cancel(err)
					return
				}
				latencies[i] = latency
			}
		})
	}
	group.Wait()
	elapsed = time.Since(started)
	if err := context.Cause(ctx); err != nil {
		return 0, nil, err
	}

	if r != nil {
		calls, err := cp.calls(ctx, r.name)
		if err != nil {
			return 0, nil, err
		}
		if calls-callsBefore != n {
			return 0, nil, fmt.Errorf("the API server called the webhook %d times for %d pods", calls-callsBefore, n)
		}
		if err := cp.unregister(ctx, r.name); err != nil {
			return 0, nil, err
		}
	}
	return elapsed, latencies, cp.deletePods(ctx)
}

func (cp *controlPlane) createPod(ctx context.Context, pod *corev1.Pod, i int, podDefault string, marked bool) (time.Duration, error) {
	pod = pod.DeepCopy()
	pod.Name = fmt.Sprintf("segmentation-%d", i)
	started := time.Now()
	stored, err := cp.clients.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return 0, err
	}
	latency := time.Since(started)
	if _, found := stored.Annotations[markPrefix+podDefault]; found != marked {
		return 0, fmt.Errorf("pod %s: mark of PodDefault %s there: %t, wanted: %t", pod.Name, podDefault, found, marked)
	}
	return latency, nil
}

// deletePods returns when the namespace has no pod.
func (cp *controlPlane) deletePods(ctx context.Context) error {
	pods := cp.clients.CoreV1().Pods(namespace)
	atOnce := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	if err := pods.DeleteCollection(ctx, atOnce, metav1.ListOptions{}); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		left, err := pods.List(ctx, metav1.ListOptions{Limit: 1})
		return err == nil && len(left.Items) == 0, err
	})
}
