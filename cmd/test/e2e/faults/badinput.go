// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/sallyport-io/sallyport/test/lab"
)

const (
	// hang is how long an input may take: the server gives a caller 15 s to send.
	hang = 20 * time.Second
	// What the memory of the server may be above what it was, when all is over. The
	// garbage collector keeps some of what it had.
	memoryLeft     = 64 << 20
	goroutinesLeft = 10
)

// badInput sends each class of bad input 200 times to a replica that takes part in the
// stream.
func badInput(ctx context.Context, c *cluster, _ int, out *result) error {
	times := 200
	if c.settings.short {
		times = 10
	}
	classes, err := badClasses()
	if err != nil {
		return err
	}
	live, err := c.deploy(ctx, 2, "--private-paths=Never") // the attacker knows the path
	if err != nil {
		return err
	}
	stopWatching := c.watchReadiness(ctx, live)
	defer stopWatching()
	s, err := c.startStream(ctx, "pod", typicalPodDefaults)
	if err != nil {
		return err
	}
	victim := live[0]
	if !lab.Sleep(ctx, 2*time.Second) { // the stream has what connections it needs
		return ctx.Err()
	}
	goroutines, err := victim.metric(ctx, "go_goroutines")
	if err != nil {
		return err
	}
	memory, err := victim.metric(ctx, "process_resident_memory_bytes")
	if err != nil {
		return err
	}
	peak, wrong := memory, 0
	var slow sync.WaitGroup
	var mu sync.Mutex
	try := func(class badClass, atOnce int) {
		problem := class.try(ctx, fmt.Sprintf("%s:%d", victim.address, webhookPort), times, atOnce)
		mu.Lock()
		defer mu.Unlock()
		if problem != nil {
			wrong++
			out.problemf("%s: %v", class.name, problem)
		}
	}
	for _, class := range classes {
		if class.waits { // beside all others
			slow.Go(func() { try(class, times) })
			continue
		}
		try(class, 8)
		if now, err := victim.metric(ctx, "process_resident_memory_bytes"); err == nil {
			peak = max(peak, now)
		}
	}
	slow.Wait()

	var memoryAfter, goroutinesAfter float64
	// The API server keeps idle connections for 90 s, each a goroutine of the server's.
	if err := lab.Await(ctx, 2*time.Minute, "the server to be as it was", func(ctx context.Context) error {
		var err error
		if goroutinesAfter, err = victim.metric(ctx, "go_goroutines"); err != nil {
			return err
		}
		if memoryAfter, err = victim.metric(ctx, "process_resident_memory_bytes"); err != nil {
			return err
		}
		if goroutinesAfter > goroutines+goroutinesLeft {
			return fmt.Errorf("it has %.0f goroutines and had %.0f", goroutinesAfter, goroutines)
		}
		if memoryAfter > memory+memoryLeft {
			return fmt.Errorf("it has %.0f MiB of memory and had %.0f", memoryAfter/(1<<20), memory/(1<<20))
		}
		return nil
	}); err != nil {
		out.problemf("%v", err)
	}
	panics, err := victim.metric(ctx, "sallyport_serving_panics_total")
	if err != nil {
		return err
	}
	if panics > 0 {
		out.problemf("%.0f panics", panics)
	}
	// Creates may be queued: the sender of bad input takes the machine for itself.
	good := s.stop(ctx, out)
	out.requireNoFailure(good.failures, "")
	out.requireInjected(good)
	out.notef("%d classes × %d; %.0f panics; memory %.0f MiB, at most %.0f, at the end %.0f; goroutines %.0f, at the end %.0f",
		len(classes), times, panics, memory/(1<<20), peak/(1<<20), memoryAfter/(1<<20), goroutines, goroutinesAfter)
	stopWatching()
	return c.withdraw(ctx, live)
}

// try sends the input so many times, and returns what was wrong first.
func (c badClass) try(ctx context.Context, address string, times, atOnce int) error {
	var group sync.WaitGroup
	var mu sync.Mutex
	var first error
	failed := 0
	slots := make(chan struct{}, atOnce)
	for range times {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			if err := c.once(ctx, address); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed++
				if first == nil {
					first = err
				}
			}
		})
	}
	group.Wait()
	if first != nil {
		return fmt.Errorf("%d of %d: %w", failed, times, first)
	}
	return nil
}

func (c badClass) once(ctx context.Context, address string) error {
	conn, err := (&net.Dialer{Timeout: hang}).DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(hang)); err != nil {
		return err
	}
	if !c.plain {
		config := &tls.Config{}
		if c.tls != nil {
			config = c.tls.Clone()
		}
		config.InsecureSkipVerify = true
		secure := tls.Client(conn, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			return c.check(0, nil, err)
		}
		conn = secure
	}
	// The server may answer and close before it has read everything.
	_, writeErr := conn.Write(c.send)
	if c.leaves {
		return writeErr
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return c.check(0, nil, err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return c.check(response.StatusCode, text, err)
}

func (c badClass) check(status int, text []byte, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("nothing came within %s", hang)
	}
	if !slices.Contains(c.statuses, status) {
		problem := fmt.Errorf("answered with %d %.200q, expected %v", status, text, c.statuses)
		if err != nil {
			problem = fmt.Errorf("%w: %w", problem, err)
		}
		return problem
	}
	return nil
}
