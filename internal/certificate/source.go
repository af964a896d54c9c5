// SPDX-License-Identifier: Apache-2.0

// Package certificate provides the serving certificate of the webhooks: from files that
// something else maintains ([NewFiles]), or from an authority that all replicas share
// ([NewAuthority]).
package certificate

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// current is the current certificate of a source.
type current struct {
	now     func() time.Time
	log     *slog.Logger
	serving atomic.Pointer[serving]

	mu      sync.Mutex
	changed chan struct{}
	problem error // why the last attempt to renew failed
	// renewals counts the certificates put into use.
	renewals uint64
}

var errNothingYet = errors.New("there is no serving certificate yet")

type serving struct {
	certificate *tls.Certificate
	bundle      []byte
}

func newCurrent(now func() time.Time, log *slog.Logger) *current {
	if now == nil {
		now = time.Now
	}
	if log == nil {
		log = slog.Default()
	}
	return &current{now: now, log: log, changed: make(chan struct{})}
}

// GetCertificate implements [Source].
func (c *current) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if have := c.serving.Load(); have != nil {
		return have.certificate, nil
	}
	return nil, errNothingYet
}

// CABundle implements [Source].
func (c *current) CABundle() []byte {
	if have := c.serving.Load(); have != nil {
		return have.bundle
	}
	return nil
}

// Changed implements [Source].
func (c *current) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// NotAfter implements [Source].
func (c *current) NotAfter() time.Time {
	if have := c.serving.Load(); have != nil {
		return have.certificate.Leaf.NotAfter
	}
	return time.Time{}
}

// Ready implements [Source].
func (c *current) Ready() error {
	have := c.serving.Load()
	var reason error
	if have == nil {
		reason = errNothingYet
	} else {
		reason = validAt(have.certificate.Leaf, c.now())
	}
	if reason == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.problem != nil {
		return fmt.Errorf("%w: %w", reason, c.problem)
	}
	return reason
}

// set replaces the certificate and notifies waiters.
func (c *current) set(certificate *tls.Certificate, bundle []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.serving.Load()
	if before == nil || before.certificate != certificate {
		c.renewals++
		c.log.Info("serving certificate changed", slog.Time("notAfter", certificate.Leaf.NotAfter))
	} else if !bytes.Equal(before.bundle, bundle) {
		c.log.Info("CA bundle changed")
	}
	c.serving.Store(&serving{certificate: certificate, bundle: bundle})
	c.problem = nil
	close(c.changed)
	c.changed = make(chan struct{})
}

// report records the outcome of a renewal for [current.Ready], and logs new problems.
func (c *current) report(problem error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case problem == nil || c.problem != nil && c.problem.Error() == problem.Error():
	case errors.Is(problem, errNotSeenYet):
		c.log.Info("there is no serving certificate yet", slog.Any("why", problem))
	default:
		c.log.Error("serving certificate cannot be renewed", slog.Any("error", problem),
			slog.Bool("keepingTheOldOne", c.serving.Load() != nil))
	}
	c.problem = problem
}

// validAt returns why a certificate is not valid at a time.
func validAt(certificate *x509.Certificate, at time.Time) error {
	if at.After(certificate.NotAfter) {
		return fmt.Errorf("the certificate expired at %s", certificate.NotAfter.UTC().Format(time.RFC3339))
	}
	if at.Before(certificate.NotBefore) {
		return fmt.Errorf("the certificate is not valid before %s: compare the clocks", certificate.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}

// trusted returns why clients that trust the bundle would reject a certificate at a time.
// It does not check names.
func trusted(certificate *tls.Certificate, bundle []*x509.Certificate, at time.Time) error {
	options := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: at}
	for _, root := range bundle {
		options.Roots.AddCert(root)
	}
	for _, der := range certificate.Certificate[1:] {
		intermediate, err := x509.ParseCertificate(der)
		if err != nil {
			return fmt.Errorf("parse the chain of the certificate: %w", err)
		}
		options.Intermediates.AddCert(intermediate)
	}
	if _, err := certificate.Leaf.Verify(options); err != nil {
		return fmt.Errorf("clients would reject the certificate: %w", err)
	}
	return nil
}
