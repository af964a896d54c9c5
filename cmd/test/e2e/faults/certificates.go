// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/test/lab"
)

// newConnections opens connections to replicas all the time, as the API server does
// when it needs one: it trusts the caBundle of the live configuration and nothing else.
// The API server itself would hardly ever need one, at a steady rate.
type newConnections struct {
	mu       sync.Mutex
	bundle   *x509.CertPool
	made     int
	leaves   map[string]int // changes of the certificate, by replica
	last     map[string]string
	problems []string

	cancel context.CancelFunc
	done   sync.WaitGroup
}

func (c *cluster) openConnections(ctx context.Context, replicas []*replica) *newConnections {
	n := &newConnections{leaves: map[string]int{}, last: map[string]string{}}
	ctx, n.cancel = context.WithCancel(ctx)
	n.done.Go(func() {
		for {
			n.readBundle(ctx, c)
			if !lab.Sleep(ctx, 50*time.Millisecond) {
				return
			}
		}
	})
	for _, r := range replicas {
		n.done.Go(func() {
			for lab.Sleep(ctx, 100*time.Millisecond) {
				n.open(ctx, r)
			}
		})
	}
	return n
}

func (n *newConnections) readBundle(ctx context.Context, c *cluster) {
	configuration, err := c.clients.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, configurationName, metav1.GetOptions{})
	if err != nil || len(configuration.Webhooks) == 0 {
		return // another time
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(configuration.Webhooks[0].ClientConfig.CABundle)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.bundle = pool
}

func (n *newConnections) open(ctx context.Context, r *replica) {
	n.mu.Lock()
	bundle := n.bundle
	n.mu.Unlock()
	if bundle == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{
		RootCAs: bundle, ServerName: serviceName + "." + serviceNamespace + ".svc", NextProtos: []string{"http/1.1"},
		MinVersion: tls.VersionTLS12,
	}}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(r.address, fmt.Sprint(webhookPort)))
	n.mu.Lock()
	defer n.mu.Unlock()
	n.made++
	switch {
	case errors.Is(err, context.Canceled):
		n.made--
	case err != nil && bundle != n.bundle:
		n.made-- // the bundle was replaced while this one was under way
	case err != nil:
		n.problems = append(n.problems, fmt.Sprintf("%s: %v", r.Name, err))
	default:
		serial := conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String()
		if n.last[r.Name] != "" && n.last[r.Name] != serial {
			n.leaves[r.Name]++
		}
		n.last[r.Name] = serial
		_ = conn.Close()
	}
}

// rotations is how often certificates have changed, over all replicas.
func (n *newConnections) rotations() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	sum := 0
	for _, changes := range n.leaves {
		sum += changes
	}
	return sum
}

func (n *newConnections) stop(out *result) {
	n.cancel()
	n.done.Wait()
	if len(n.problems) > 0 {
		out.problemf("%d of %d new connections failed, the first: %s", len(n.problems), n.made, n.problems[0])
	}
	out.notef("%d new connections, verified by the caBundle", n.made)
}

// leafLifetime is short: certificates are renewed after two thirds of it. It is a few
// times the second that is the resolution of a certificate's times.
const leafLifetime = 5 * time.Second

// leafRotation lets five replicas renew their certificates until so many were seen.
func leafRotation(ctx context.Context, c *cluster, rounds int, out *result) error {
	replicas := 5
	if c.settings.short {
		replicas = 3
	}
	live, err := c.deploy(ctx, replicas, lab.Set("certificate.lifetime", leafLifetime.String()))
	if err != nil {
		return err
	}
	s, err := c.startStream(ctx, "pod", typicalPodDefaults)
	if err != nil {
		return err
	}
	connections := c.openConnections(ctx, live)
	limit := time.Duration(rounds/replicas+5) * leafLifetime
	err = lab.Await(ctx, limit, "certificates to be renewed", func(context.Context) error {
		if n := connections.rotations(); n < rounds {
			return fmt.Errorf("%d renewals so far", n)
		}
		return nil
	})
	if err != nil {
		out.problemf("%v", err)
	}
	out.Rounds = connections.rotations()
	connections.stop(out)
	out.requireNothingLost(s.stop(ctx, out))
	return c.withdraw(ctx, live)
}

// authorityRotation replaces the authority of three replicas, with the command that is
// there for it.
func authorityRotation(ctx context.Context, c *cluster, rounds int, out *result) error {
	propagation := 5 * time.Second
	if c.settings.short {
		propagation = 2 * time.Second
	}
	live, err := c.deploy(ctx, 3, lab.Set("certificate.caPropagation", propagation.String()))
	if err != nil {
		return err
	}
	s, err := c.startStream(ctx, "pod", typicalPodDefaults)
	if err != nil {
		return err
	}
	if err := c.awaitLeader(ctx); err != nil {
		return err
	}
	connections := c.openConnections(ctx, live)
	var slowest time.Duration
	for range rounds {
		began := time.Now()
		if err := c.rotate(ctx); err != nil {
			return err
		}
		slowest = max(slowest, time.Since(began))
	}
	connections.stop(out)
	out.requireNothingLost(s.stop(ctx, out))
	out.notef("caPropagation %s; at most %.0f s for a rotation", propagation, slowest.Seconds())
	return c.withdraw(ctx, live)
}

// rotate asks for a rotation and waits until it is done.
func (c *cluster) rotate(ctx context.Context) error {
	command := exec.CommandContext(ctx, c.settings.binary, "certificates", "rotate", "--kubeconfig", c.cp.Kubeconfig,
		"--authority-secret", serviceNamespace+"/"+authoritySecret, "--wait", "--timeout", "2m")
	command.Env = os.Environ()
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("sallyport certificates rotate: %w\n%s", err, out)
	}
	return nil
}
