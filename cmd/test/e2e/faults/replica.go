// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"strconv"
	"syscall"
	"time"

	"github.com/sallyport-io/sallyport/test/lab"
)

// Ports of every replica; the addresses differ.
const (
	webhookPort = 9443
	metricsPort = 8080
)

// A replica is a process of sallyport serve on an address of its own.
type replica struct {
	*lab.Server
	address  string
	stopped  time.Time // when it was asked to end; zero if it was not
	confined bool      // the kernel kills it if it takes more memory than it may
}

// startReplica starts a replica and waits for nothing. Arguments come last, and win.
func (c *cluster) startReplica(args ...string) (*replica, error) {
	return c.startWithMemory(0, args...)
}

// startWithMemory is startReplica with that many bytes of memory; 0 for any.
func (c *cluster) startWithMemory(memory int, args ...string) (*replica, error) {
	c.replicas++
	n := c.replicas
	r := &replica{address: fmt.Sprintf("10.244.%d.%d", 1+n/250, 1+n%250)}
	serving := lab.Serving{
		Name: fmt.Sprintf("replica-%04d", n), Binary: c.settings.binary, Kubeconfig: c.cp.Kubeconfig, OwnGroup: true,
		Address: r.address, Port: webhookPort, Metrics: metricsPort,
	}
	if memory > 0 { // as the container has it: a part is for what Go's runtime does not count
		serving.Env = []string{fmt.Sprintf("GOMEMLIMIT=%d", memory/10*9)}
	}
	var err error
	r.Server, err = lab.Serve(c.dir, serving, append([]string{
		c.endpointFlag(), "--authority-secret", serviceNamespace + "/" + authoritySecret,
		lab.Set("webhooks.poddefault.guard", "Fail"), // losses show as pods that fail
		// It would keep the PodDefaults of the next row from being written while nobody
		// answers, which is its purpose.
		lab.Set("webhooks.poddefault.authorizeAuthors", `"off"`),
		lab.Set("serving.drainMin", c.drainMin().String()), lab.Set("serving.drainTimeout", c.drainMax().String()),
	}, args...)...)
	if err != nil {
		return r, err
	}
	if memory > 0 {
		r.confine(memory)
	}
	c.running = append(c.running, r)
	return r, nil
}

func (c *cluster) endpointFlag() string {
	if c.url != "" {
		return "--url=" + c.url
	}
	return "--service=" + serviceNamespace + "/" + serviceName
}

// Drains are as long as they are by default, except in the short run.
func (c *cluster) drainMin() time.Duration {
	if c.settings.short {
		return 4 * time.Second
	}
	return 15 * time.Second
}

func (c *cluster) drainMax() time.Duration {
	if c.settings.short {
		return 6 * time.Second
	}
	return 95 * time.Second
}

// startReady starts a replica and returns when it is ready. It has no endpoint yet.
func (c *cluster) startReady(ctx context.Context, args ...string) (*replica, error) {
	r, err := c.startReplica(args...)
	if err != nil {
		return nil, err
	}
	return r, r.awaitReady(ctx)
}

func (r *replica) awaitReady(ctx context.Context) error { return r.AwaitReady(ctx, time.Minute) }

// probe asks /readyz where the kubelet would.
func (r *replica) probe(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := lab.Get(ctx, lab.Probes, r.URL+"/readyz")
	return err
}

// terminate asks the replica to end.
func (r *replica) terminate() {
	r.stopped = time.Now()
	r.Signal(syscall.SIGTERM)
}

// awaitDrained waits until the replica has ended, and tells if it did not end well
// and in time.
func (c *cluster) awaitDrained(ctx context.Context, r *replica) error {
	ctx, cancel := context.WithDeadline(ctx, r.stopped.Add(c.drainMax()+10*time.Second))
	defer cancel()
	return r.AwaitEnd(ctx)
}

func (c *cluster) awaitAllDrained(ctx context.Context, all []*replica) []error {
	var errs []error
	for _, r := range all {
		if err := c.awaitDrained(ctx, r); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// metric returns the value of a line of the replica's /metrics.
func (r *replica) metric(ctx context.Context, name string) (float64, error) {
	text, err := r.Metric(ctx, name)
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(text, 64)
}
