// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"time"

	"github.com/sallyport-io/sallyport/test/lab"
)

const (
	// manyRate is what the largest clusters create in a second.
	manyRate = 1000
	// manyFor is how long.
	manyFor = 5 * time.Minute
)

// manyCreates offers as many creates as the largest clusters make. What the machine cannot make is queued; none may
// fail or be stored without its PodDefaults. The note has the processor time of the replicas for a pod, by which the
// rest is known: they share nothing.
func manyCreates(ctx context.Context, c *cluster, _ int, out *result) error {
	live, err := c.deploy(ctx, 3)
	if err != nil {
		return err
	}
	before, err := processorTime(ctx, live)
	if err != nil {
		return err
	}
	s, err := c.startStreamAt(ctx, "pod", typicalPodDefaults, manyRate)
	if err != nil {
		return err
	}
	if !lab.Sleep(ctx, manyFor) {
		return ctx.Err()
	}
	t := s.stop(ctx, out)
	after, err := processorTime(ctx, live)
	if err != nil {
		return err
	}
	out.requireInjected(t)
	out.requireNoFailure(t.failures, "")
	if perPod := (after - before) / float64(t.attempts); perPod > 0 {
		out.notef("%.0f µs of processor time of the replicas for a pod: 1,000 pods/s take %.2f processors", perPod*1e6, perPod*manyRate)
	}
	return c.withdraw(ctx, live)
}

// processorTime is that of all replicas, in seconds.
func processorTime(ctx context.Context, live []*replica) (sum float64, err error) {
	for _, r := range live {
		seconds, err := r.metric(ctx, "process_cpu_seconds_total")
		if err != nil {
			return 0, err
		}
		sum += seconds
	}
	return sum, nil
}
