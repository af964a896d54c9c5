// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/sallyport-io/sallyport/test/lab"
)

// propagation is how long the API server may take to hear of an endpoint that was
// removed.
const propagation = 500 * time.Millisecond

// propagation is that, or a few times as much in the short run, which others keep waiting.
func (c *cluster) propagation() time.Duration {
	if c.settings.short {
		return 4 * propagation
	}
	return propagation
}

// recovery is how long after the end of a fault creates may still fail.
const recovery = 5 * time.Second

// awaitRecovery returns until when creates may fail after the end of a fault, once it has
// seen that for a while after none does: for as long as recovery. The short run is on a
// machine that does other work too: until creates succeed again, however long that takes.
func (s *stream) awaitRecovery(ctx context.Context, ended time.Time) (until time.Time, err error) {
	const calm = 3 * time.Second
	until = ended.Add(recovery)
	if s.c.settings.short {
		err = lab.Await(ctx, 2*time.Minute, "creates that succeed one after another", func(context.Context) error {
			until = s.lastFailure(ended)
			if time.Since(until) < calm {
				return fmt.Errorf("one has failed at %s", until.Format(time.TimeOnly))
			}
			return nil
		})
		if err == nil {
			_, err = s.awaitSuccess(ctx, until, time.Minute)
		}
		return until, err
	}
	if !lab.Sleep(ctx, time.Until(until.Add(calm))) {
		return until, ctx.Err()
	}
	return until, nil
}

// A period is a time in which creates may fail.
type period struct {
	from, to time.Time
	// address is of the replica that is gone: failures that name an address must name
	// this one. Empty: any.
	address string
}

// outside returns the failures of creates that were not under way in one of the
// periods, or that name another replica.
func outside(failures []attempt, periods []period) []attempt {
	var out []attempt
	for _, f := range failures {
		excused := false
		for _, p := range periods {
			text := f.err.Error()
			named := p.address != "" && strings.Contains(text, "10.244.")
			if f.start.Before(p.to) && f.end.After(p.from) && (!named || strings.Contains(text, p.address+":")) {
				excused = true
			}
		}
		if !excused {
			out = append(out, f)
		}
	}
	return out
}

// killing kills one of three replicas. Its endpoint goes 1 s or 10 s later; then
// another takes its place.
func killing(ctx context.Context, c *cluster, rounds int, out *result) error {
	live, err := c.deploy(ctx, 3)
	if err != nil {
		return err
	}
	s, err := c.startStream(ctx, "pod", typicalPodDefaults)
	if err != nil {
		return err
	}
	var periods []period
	for round := range rounds {
		victim := live[round%len(live)]
		after := time.Second
		if round%2 == 1 && !c.settings.short {
			after = 10 * time.Second
		}
		killed := time.Now()
		victim.Kill()
		if !lab.Sleep(ctx, after) {
			return ctx.Err()
		}
		removed, err := c.removeEndpoint(ctx, victim)
		if err != nil {
			return err
		}
		periods = append(periods, period{killed, removed.Add(c.propagation()), victim.address})
		// With two left, all is well.
		if !lab.Sleep(ctx, 2*time.Second) {
			return ctx.Err()
		}
		if live[round%len(live)], err = c.startReady(ctx); err != nil {
			return err
		}
		if err := c.addEndpoint(ctx, live[round%len(live)]); err != nil {
			return err
		}
	}
	t := s.stop(ctx, out)
	out.requireInjected(t)
	out.requireNoFailure(outside(t.failures, periods), " that were neither in flight at a kill nor sent to the killed replica while it had an endpoint")
	return c.withdraw(ctx, live)
}

// pause is how long processes are stopped.
func (c *cluster) pause() time.Duration {
	if c.settings.short {
		return 6 * time.Second
	}
	return 10 * time.Second
}

// freezing stops one of three replicas for 10 s, and lets it go on. It keeps its
// connections, accepts new ones, and answers nothing.
func freezing(ctx context.Context, c *cluster, rounds int, out *result) error {
	live, err := c.deploy(ctx, 3)
	if err != nil {
		return err
	}
	stop := c.watchReadiness(ctx, live)
	defer stop()
	s, err := c.startStream(ctx, "pod", typicalPodDefaults)
	if err != nil {
		return err
	}
	var periods []period
	for round := range rounds {
		victim := live[round%len(live)]
		from := time.Now()
		victim.Signal(syscall.SIGSTOP)
		if !lab.Sleep(ctx, c.pause()) {
			return ctx.Err()
		}
		victim.Signal(syscall.SIGCONT)
		to, err := s.awaitRecovery(ctx, time.Now())
		if err != nil {
			return err
		}
		periods = append(periods, period{from: from, to: to})
	}
	t := s.stop(ctx, out)
	out.requireInjected(t)
	out.requireNoFailure(outside(t.failures, periods), " while no replica was stopped, after it had recovered")
	stop()
	return c.withdraw(ctx, live)
}
