// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// usualLoad is how many pods are created in a second: many, for a cluster.
const usualLoad = 10

// loads are the multiples of it that are compared.
var loads = []int{1, 20}

// overloadTimeout is the webhook's timeout in seconds that the server registers by default.
const overloadTimeout = 5

// An overload is pods that arrive at a rate, whatever became of those before: an API server that
// cannot keep up has ever more of them. Of those that were refused nothing is tried again.
type overload struct {
	Server  string `json:"server"`
	Load    int    `json:"load"` // × usualLoad
	Pods    int    `json:"pods"`
	Refused int    `json:"refused"`
	// RefusedPercent is the share in each turn. The others are medians or percentiles over all turns.
	RefusedPercent   []float64 `json:"refusedPercent"`
	CreatesPerSecond float64   `json:"createsPerSecond"`
	P50Millis        float64   `json:"p50Milliseconds"` // of those that were created
	P99Millis        float64   `json:"p99Milliseconds"`
	// Reasons are the distinct errors, without the names of pods.
	Reasons []string `json:"reasons,omitempty"`
}

func overloadStage(podDefaults int) stage {
	return stage{part: partOverload, podDefaults: podDefaults, servers: []string{cachedName, consistentName}, overload: true}
}

// measureOverload creates pods at each load with each freshness. Turns alternate.
func measureOverload(ctx context.Context, p schedule, site *site, targets []target) ([]overload, error) {
	pod, err := parsePod(notebookPodYAML, selecting)
	if err != nil {
		return nil, err
	}
	var rows []overload
	for _, load := range loads {
		first, latencies, rates := len(rows), make([][]time.Duration, len(targets)), make([][]float64, len(targets))
		for _, t := range targets {
			rows = append(rows, overload{Server: t.Name, Load: load})
		}
		for range p.CreateTurns {
			for i, t := range targets {
				r := site.registration(t, podDefaultPath)
				r.timeout = overloadTimeout
				turn, err := site.cp.arrive(ctx, pod, load*usualLoad, p.Arrivals, r)
				if err != nil {
					return nil, fmt.Errorf("%d × the usual load on %s: %w", load, t.Name, err)
				}
				row := &rows[first+i]
				row.Pods += turn.pods
				row.Refused += turn.pods - len(turn.latencies)
				row.RefusedPercent = append(row.RefusedPercent, 100*float64(turn.pods-len(turn.latencies))/float64(turn.pods))
				for _, reason := range turn.reasons {
					if !slices.Contains(row.Reasons, reason) {
						row.Reasons = append(row.Reasons, reason)
					}
				}
				rates[i] = append(rates[i], float64(len(turn.latencies))/turn.elapsed.Seconds())
				latencies[i] = append(latencies[i], turn.latencies...)
			}
		}
		for i := range targets {
			row := &rows[first+i]
			slices.Sort(row.Reasons)
			row.CreatesPerSecond = median(rates[i])
			if len(latencies[i]) > 0 {
				row.P50Millis, row.P99Millis = millis(percentile(latencies[i], 50)), millis(percentile(latencies[i], 99))
			}
		}
	}
	return rows, nil
}

// An arrival is one turn.
type arrival struct {
	pods      int
	elapsed   time.Duration   // until the last was answered
	latencies []time.Duration // of those that were created
	reasons   []string
}

// arrive creates pods at a rate for a time, and deletes them again.
func (cp *controlPlane) arrive(ctx context.Context, pod *corev1.Pod, perSecond int, window time.Duration, r *registration) (*arrival, error) {
	if err := cp.register(ctx, *r); err != nil {
		return nil, err
	}
	typical, err := typicalPodDefaults()
	if err != nil {
		return nil, err
	}
	out := &arrival{pods: max(1, int(window.Seconds()*float64(perSecond)))}
	var mu sync.Mutex
	var group sync.WaitGroup
	began := time.Now()
	for i := range out.pods {
		// By the clock: a ticker would drop what a busy machine is late for.
		select {
		case <-ctx.Done():
			group.Wait()
			return nil, ctx.Err()
		case <-time.After(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(perSecond)))):
		}
		group.Go(func() {
			latency, err := cp.createPod(ctx, pod, i, typical[0].Name, true)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				out.latencies = append(out.latencies, latency)
				return
			}
			if reason := reasonOf(err); !slices.Contains(out.reasons, reason) {
				out.reasons = append(out.reasons, reason)
			}
		})
	}
	group.Wait()
	out.elapsed = time.Since(began)
	if err := cp.unregister(ctx, r.name); err != nil {
		return nil, err
	}
	return out, cp.deletePods(ctx)
}

// reasonOf is an error without what differs from pod to pod.
func reasonOf(err error) string {
	text := err.Error()
	for _, known := range []string{"context deadline exceeded", "server closed idle connection", "EOF", "connection reset by peer", "broken pipe", "cannot tell whether PodDefaults are up to date", "the server was unable to return a response in the time allotted", "Too many requests"} {
		if strings.Contains(text, known) {
			return known
		}
	}
	return text[:min(len(text), 200)]
}
