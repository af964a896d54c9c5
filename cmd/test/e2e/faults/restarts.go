// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/test/lab"
)

// rollingRestart replaces three replicas, one after another, again and again. A step is
// what a Deployment with maxUnavailable: 0 makes: start the new one, wait until it is
// ready, add its endpoint, remove the old one's, SIGTERM. The old ones drain beside
// what follows, and must end with status 0.
func rollingRestart(ctx context.Context, c *cluster, rounds int, out *result) error {
	live, err := c.deploy(ctx, 3)
	if err != nil {
		return err
	}
	s, err := c.startStream(ctx, "pod", typicalPodDefaults)
	if err != nil {
		return err
	}
	var old []*replica
	for range rounds {
		for i := range live {
			next, err := c.startReady(ctx)
			if err != nil {
				return err
			}
			if err := c.replace(ctx, live[i], next); err != nil {
				return err
			}
			old = append(old, live[i])
			live[i] = next
		}
		if n := s.failuresSoFar(); n > 0 {
			c.progress.sayf("  %d failures so far", n)
		}
	}
	for _, err := range c.awaitAllDrained(ctx, old) {
		out.problemf("%v", err)
	}
	out.notef("%d old replicas drained and ended with 0", len(old))
	out.requireNothingLost(s.stop(ctx, out))
	return c.withdraw(ctx, live)
}

// replace puts the endpoint of a replica in the place of another's, which is asked to
// end.
func (c *cluster) replace(ctx context.Context, old, next *replica) error {
	if err := c.addEndpoint(ctx, next); err != nil {
		return err
	}
	if _, err := c.removeEndpoint(ctx, old); err != nil {
		return err
	}
	old.terminate()
	return nil
}

// idleTermination lets a replica end that nobody calls; 3 s later, before its endpoint
// is gone, calls come after all. Every other round it has had calls before, and idle
// connections are open. There is no other endpoint.
func idleTermination(ctx context.Context, c *cluster, rounds int, out *result) error {
	const calls = 20
	var live *replica
	var old []*replica
	began := time.Now()
	for round := range rounds {
		next, err := c.startReady(ctx)
		if err != nil {
			return err
		}
		if err := c.addEndpoint(ctx, next); err != nil {
			return err
		}
		if live != nil {
			if _, err := c.removeEndpoint(ctx, live); err != nil {
				return err
			}
		}
		live = next
		if round == 0 { // the configuration must be known
			if err := c.awaitInjection(ctx); err != nil {
				return err
			}
		}
		// The API server must have heard of the new endpoint.
		if !lab.Sleep(ctx, 200*time.Millisecond) {
			return ctx.Err()
		}
		if round%2 == 1 {
			c.burst(ctx, fmt.Sprintf("warm-%d", round), calls, out)
		}
		live.terminate()
		old = append(old, live)
		if !lab.Sleep(ctx, 3*time.Second) {
			return ctx.Err()
		}
		if live.HasEnded() {
			out.problemf("%s had ended 3 s after SIGTERM, before its endpoint went", live.Name)
		}
		c.burst(ctx, fmt.Sprintf("late-%d", round), calls, out)
	}
	out.CreateSeconds = time.Since(began).Seconds()
	if _, err := c.removeEndpoint(ctx, live); err != nil {
		return err
	}
	for _, err := range c.awaitAllDrained(ctx, old) {
		out.problemf("%v", err)
	}
	out.notef("%d calls at once in each round", calls)
	return nil
}

// burst creates n pods at once; all must succeed and be injected.
func (c *cluster) burst(ctx context.Context, name string, n int, out *result) {
	var group sync.WaitGroup
	var mu sync.Mutex
	var t tally
	for i := range n {
		group.Go(func() {
			start := time.Now()
			pod, err := c.clients.CoreV1().Pods(c.namespace).Create(ctx, newPod(fmt.Sprintf("%s-%d", name, i), i, typicalPodDefaults), metav1.CreateOptions{})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.failures = append(t.failures, attempt{start, time.Now(), err})
			} else if err := checkInjected(pod); err != nil {
				t.uninjected = append(t.uninjected, err.Error())
			}
		})
	}
	group.Wait()
	out.Creates += n
	out.Failed += len(t.failures)
	out.Uninjected += len(t.uninjected)
	out.requireNothingLost(t)
}
