// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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
	*process
	address string
	stopped time.Time // when it was asked to end; zero if it was not
}

// probes is a client as the kubelet's prober: it looks at no certificate and keeps
// no connection.
var probes = &http.Client{Transport: &http.Transport{
	DisableKeepAlives: true,
	TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // as the kubelet does
}}

// startReplica starts a replica and waits for nothing. Arguments come last, and win.
func (c *cluster) startReplica(args ...string) (*replica, error) {
	return c.startReplicaOf(build{binary: c.settings.binary}, args...)
}

// startReplicaOf is startReplica with a binary; what its serve does not know is left out,
// unless nobody has asked what it knows.
func (c *cluster) startReplicaOf(b build, args ...string) (*replica, error) {
	c.replicas++
	n := c.replicas
	r := &replica{address: fmt.Sprintf("10.244.%d.%d", 1+n/250, 1+n%250)}
	all := append([]string{
		"serve", "--kubeconfig", c.cp.kubeconfig, c.endpointFlag(), "--authority-secret", serviceNamespace + "/" + authoritySecret,
		"--bind-address", r.address, "--secure-port", strconv.Itoa(webhookPort),
		"--metrics-bind-address", fmt.Sprintf("%s:%d", r.address, metricsPort),
		lab.Set("webhooks.poddefault.guard", "Fail"), // losses show as pods that fail
		// It would keep the PodDefaults of the next row from being written while nobody
		// answers, which is its purpose.
		lab.Set("webhooks.poddefault.authorizeAuthors", `"off"`),
		lab.Set("serving.drainMin", c.drainMin().String()), lab.Set("serving.drainTimeout", c.drainMax().String()),
	}, args...)
	folder := filepath.Join(c.dir, fmt.Sprintf("config-%04d", n))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	all, err := lab.Arguments(folder, all...)
	if err != nil {
		return nil, err
	}
	if b.knows != nil {
		all = b.known(all)
	}
	r.process, err = startProcessLimited(c.dir, fmt.Sprintf("replica-%04d", n), b.binary, b.memory, all...)
	if err == nil {
		c.running = append(c.running, r)
	}
	return r, err
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

// startReadyOf is startReady with a binary.
func (c *cluster) startReadyOf(ctx context.Context, b build, args ...string) (*replica, error) {
	r, err := c.startReplicaOf(b, args...)
	if err != nil {
		return nil, err
	}
	return r, r.awaitReady(ctx)
}

func (r *replica) awaitReady(ctx context.Context) error {
	return await(ctx, time.Minute, r.name+" to be ready", func(ctx context.Context) error {
		if r.hasEnded() {
			return final(fmt.Errorf("it ended: %w\n%s", r.err, r.logTail()))
		}
		return r.probe(ctx, time.Second)
	})
}

// probe asks /readyz where the kubelet would.
func (r *replica) probe(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return getOK(ctx, probes, fmt.Sprintf("https://%s:%d/readyz", r.address, webhookPort))
}

// terminate asks the replica to end.
func (r *replica) terminate() {
	r.stopped = time.Now()
	r.signal(syscall.SIGTERM)
}

// awaitDrained waits until the replica has ended, and tells if it did not end well
// and in time.
func (c *cluster) awaitDrained(ctx context.Context, r *replica) error {
	limit := c.drainMax() + 10*time.Second
	timer := time.NewTimer(time.Until(r.stopped.Add(limit)))
	defer timer.Stop()
	if !r.hasEnded() {
		select {
		case <-r.ended:
		case <-timer.C:
			r.kill()
			return fmt.Errorf("%s was still there %s after SIGTERM", r.name, limit)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if r.err != nil {
		return fmt.Errorf("%s did not end well: %w", r.name, r.err)
	}
	return nil
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
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	text, err := get(ctx, probes, fmt.Sprintf("http://%s:%d/metrics", r.address, metricsPort))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, errors.New("there is no metric " + name)
}
