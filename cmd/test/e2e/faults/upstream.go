// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sallyport-io/sallyport/test/lab"
)

// apiServerRestart ends kube-apiserver, by turns with SIGKILL and SIGTERM, and starts
// it again.
func apiServerRestart(ctx context.Context, c *cluster, rounds int, out *result) error {
	var periods []period
	fault := func(round int) error {
		with := syscall.SIGKILL
		if round%2 == 1 {
			with = syscall.SIGTERM
		}
		from := time.Now()
		err := c.cp.RestartAPIServer(ctx, with)
		periods = append(periods, period{from: from, to: time.Now().Add(recovery)})
		return err
	}
	// Clients that do not wait for /readyz are asked, too. An API server refuses what a policy
	// is about until it has read the parameters: in no time, as it knows their kind, while that
	// of a CustomResourceDefinition takes it up to 30 s.
	failures, err := c.upstream(ctx, rounds, out, fault, lab.Set("webhooks.poddefault.guard", "Backstop"))
	wedged := slices.DeleteFunc(failures, func(f attempt) bool { return !strings.Contains(f.err.Error(), "paramKind") })
	out.requireNoFailure(outside(wedged, periods), " because the API server still did not know what the policy reads")
	out.notef("%d creates were refused until it had read what the policy reads", len(wedged))
	return err
}

// etcdPause stops etcd for 10 s.
func etcdPause(ctx context.Context, c *cluster, rounds int, out *result) error {
	_, err := c.upstream(ctx, rounds, out, func(int) error {
		c.cp.Etcd.Signal(syscall.SIGSTOP)
		lab.Sleep(ctx, c.pause())
		c.cp.Etcd.Signal(syscall.SIGCONT)
		return ctx.Err()
	})
	return err
}

// awaitBackstop returns when a policy stands in for the webhook of these replicas.
func awaitBackstop(ctx context.Context, live []*replica) error {
	return lab.Await(ctx, time.Minute, "the policy that stands in", func(ctx context.Context) error {
		for _, r := range live {
			value, err := r.metric(ctx, "sallyport_registration_backstop_in_force")
			if err != nil {
				return err
			}
			if value != 1 {
				return fmt.Errorf("%s knows of none", r.Name)
			}
		}
		return nil
	})
}

// upstream makes a fault of what is above the replicas, in each round, and returns all
// failures.
func (c *cluster) upstream(ctx context.Context, rounds int, out *result, fault func(round int) error, args ...string) ([]attempt, error) {
	live, err := c.deploy(ctx, 3, args...)
	if err != nil {
		return nil, err
	}
	if slices.Contains(args, "Backstop") {
		if err := awaitBackstop(ctx, live); err != nil {
			return nil, err
		}
	}
	stop := c.watchReadiness(ctx, live)
	defer stop()
	s, err := c.startStream(ctx, "pod", typicalPodDefaults)
	if err != nil {
		return nil, err
	}
	var periods []period
	var slowest time.Duration
	for round := range rounds {
		from := time.Now()
		if err := fault(round); err != nil {
			return nil, err
		}
		ended := time.Now()
		first, err := s.awaitSuccess(ctx, ended, time.Minute)
		if err != nil {
			return nil, err
		}
		slowest = max(slowest, first.Sub(ended))
		to, err := s.awaitRecovery(ctx, ended)
		if err != nil {
			return nil, err
		}
		periods = append(periods, period{from: from, to: to})
	}
	t := s.stop(ctx, out)
	out.requireInjected(t)
	out.requireNoFailure(outside(t.failures, periods), " after it had recovered from the fault")
	out.notef("first success at the latest %.1f s after the fault", slowest.Seconds())
	stop()
	for _, r := range live {
		if r.HasEnded() {
			out.problemf("%v", r.Failed())
		}
	}
	return t.failures, c.withdraw(ctx, live)
}
