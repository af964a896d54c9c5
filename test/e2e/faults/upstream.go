// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// recovery is how long after the end of a fault creates may still fail.
const recovery = 5 * time.Second

// apiServerRestart ends kube-apiserver, by turns with SIGKILL and SIGTERM, and starts
// it again.
func apiServerRestart(ctx context.Context, l *lab, rounds int, out *result) error {
	return l.upstream(ctx, rounds, out, func(round int) error {
		with := syscall.SIGKILL
		if round%2 == 1 {
			with = syscall.SIGTERM
		}
		return l.cp.restartAPIServer(ctx, with)
	})
}

// etcdPause stops etcd for 10 s.
func etcdPause(ctx context.Context, l *lab, rounds int, out *result) error {
	return l.upstream(ctx, rounds, out, func(int) error {
		l.cp.etcd.signal(syscall.SIGSTOP)
		sleep(ctx, l.pause())
		l.cp.etcd.signal(syscall.SIGCONT)
		return ctx.Err()
	})
}

// upstream makes a fault of what is above the replicas, in each round. A PodDefault
// that is changed afterwards shows that the replicas follow again.
func (l *lab) upstream(ctx context.Context, rounds int, out *result, fault func(round int) error) error {
	live, err := l.deploy(ctx, 3)
	if err != nil {
		return err
	}
	stop := l.watchReadiness(ctx, live)
	defer stop()
	s, err := l.startStream(ctx, "pod", typicalPodDefaults)
	if err != nil {
		return err
	}
	var periods []period
	var slowest time.Duration
	for round := range rounds {
		from := time.Now()
		if err := fault(round); err != nil {
			return err
		}
		ended := time.Now()
		first, err := s.awaitSuccess(ctx, ended, time.Minute)
		if err != nil {
			return err
		}
		slowest = max(slowest, first.Sub(ended))
		periods = append(periods, period{from: from, to: ended.Add(recovery)})
		if !sleep(ctx, time.Until(ended.Add(recovery+3*time.Second))) {
			return ctx.Err()
		}
	}
	t := s.stop(ctx, out)
	out.requireInjected(t)
	out.requireNoFailure(outside(t.failures, periods), fmt.Sprintf(" more than %s after the fault", recovery))
	out.notef("first success at the latest %.1f s after the fault", slowest.Seconds())
	stop()
	for _, r := range live {
		if r.hasEnded() {
			out.problemf("%s ended: %v", r.name, r.err)
		}
	}
	return l.withdraw(ctx, live)
}
