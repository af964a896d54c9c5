// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"time"

	"github.com/sallyport-io/sallyport/test/lab"
)

// startupRace kills all replicas and starts others, while pods are created that select
// among very many PodDefaults. The new ones are endpoints from the first moment: before
// they listen, and before they have read the PodDefaults.
func startupRace(ctx context.Context, c *cluster, rounds int, out *result) error {
	many := 10_000
	if c.settings.short {
		many = 1_000
	}
	const replicas = 2
	began := time.Now()
	if err := c.createPodDefaults(ctx, many); err != nil {
		return err
	}
	c.progress.sayf("  %d PodDefaults after %s", many, time.Since(began).Round(time.Second))
	live, err := c.deploy(ctx, replicas)
	if err != nil {
		return err
	}
	s, err := c.startStream(ctx, "pod", many)
	if err != nil {
		return err
	}
	var periods []period
	var slowest time.Duration
	for range rounds {
		from := time.Now()
		for _, r := range live {
			r.Kill()
		}
		next := make([]*replica, replicas)
		for i := range next {
			if next[i], err = c.startReplica(); err != nil {
				return err
			}
			if err := c.addEndpoint(ctx, next[i]); err != nil {
				return err
			}
			if _, err := c.removeEndpoint(ctx, live[i]); err != nil {
				return err
			}
		}
		for _, r := range next {
			if err := r.awaitReady(ctx); err != nil {
				return err
			}
		}
		ready := time.Now()
		slowest = max(slowest, ready.Sub(from))
		periods = append(periods, period{from: from, to: ready.Add(c.propagation())})
		live = next
		if _, err := s.awaitSuccess(ctx, ready, time.Minute); err != nil {
			return err
		}
		if !lab.Sleep(ctx, time.Second) {
			return ctx.Err()
		}
	}
	t := s.stop(ctx, out)
	out.requireInjected(t)
	out.requireNoFailure(outside(t.failures, periods), " while all replicas were ready")
	out.notef("%d PodDefaults; both replicas ready at the latest after %.1f s", many, slowest.Seconds())
	return c.withdraw(ctx, live)
}
