// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sallyport-io/sallyport/internal/certificate/follow"
)

const (
	// knownCallers limits the number of cached verifications: each API server has one
	// certificate.
	knownCallers = 64
	// rememberedFor is how long a verification is cached.
	rememberedFor = time.Minute
)

// ClientCAOptions configure which client certificates may call.
type ClientCAOptions struct {
	// File is the path of the PEM-encoded CA bundle that verifies client certificates.
	// Required.
	File string
	// CommonNames are the accepted common names. If empty, every certificate signed by the
	// CA is accepted.
	CommonNames []string
	// PollInterval is how often the file is read even without a notification of a change.
	// Default 10 s.
	PollInterval time.Duration
	// Now is the clock. Default [time.Now].
	Now func() time.Time
	// Logger default is [slog.Default].
	Logger *slog.Logger
	// Registry registers the metrics, unless it is nil.
	Registry prometheus.Registerer
}

// ClientCA authenticates callers by their client certificates. It reloads the file when it
// changes; if the new content is missing or invalid, the last valid content stays in use.
// Create one with [NewClientCA].
type ClientCA struct {
	options  ClientCAOptions
	log      *slog.Logger
	failures prometheus.Counter
	problem  string // the last one logged

	current atomic.Pointer[clientCA]
}

// clientCA is the parsed content of the file.
type clientCA struct {
	contents []byte
	pool     *x509.CertPool

	mu sync.Mutex
	// known caches the certificates that the pool trusts, with their expiry. Untrusted
	// certificates are not cached, so that callers cannot fill the cache.
	known map[[sha256.Size]byte]time.Time
}

// NewClientCA reads the file. The error reports all problems; a missing file or one without
// certificates is an error.
func NewClientCA(options ClientCAOptions) (*ClientCA, error) {
	var errs []error
	if options.File == "" {
		errs = append(errs, errors.New("a file with the CA is required"))
	}
	if slices.Contains(options.CommonNames, "") {
		errs = append(errs, errors.New("a common name is empty"))
	}
	if options.PollInterval < 0 {
		errs = append(errs, fmt.Errorf("poll interval %s must not be negative", options.PollInterval))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("client CA: %w", err)
	}
	if options.PollInterval == 0 {
		options.PollInterval = 10 * time.Second
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	c := &ClientCA{options: options, log: options.Logger, failures: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "sallyport_serving_client_ca_reload_failures_total",
		Help: "Times that the file with the CA of callers was invalid and its last valid content stayed in use.",
	})}
	if c.log == nil {
		c.log = slog.Default()
	}
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("client CA: %w", err)
	}
	if options.Registry != nil {
		if err := options.Registry.Register(c.failures); err != nil {
			return nil, fmt.Errorf("client CA: register metrics: %w", err)
		}
	}
	return c, nil
}

// Run watches the file until ctx ends, and then returns nil.
func (c *ClientCA) Run(ctx context.Context) error {
	follow.Files(ctx, c.log, "the file with the client CA", c.options.PollInterval, func() { c.report(ctx, c.load()) }, c.options.File)
	return nil
}

func (c *ClientCA) load() error {
	contents, err := os.ReadFile(c.options.File)
	if err != nil {
		return fmt.Errorf("read the CA: %w", err)
	}
	if have := c.current.Load(); have != nil && bytes.Equal(contents, have.contents) {
		return nil
	}
	pool, err := parseClientCA(contents)
	if err != nil {
		return fmt.Errorf("%s: %w", c.options.File, err)
	}
	c.current.Store(&clientCA{contents: contents, pool: pool, known: map[[sha256.Size]byte]time.Time{}})
	c.log.Info("client CA read", slog.String("file", c.options.File))
	return nil
}

// parseClientCA parses PEM-encoded certificates, and rejects anything else: a truncated
// file must not be accepted as one with fewer certificates.
func parseClientCA(contents []byte) (*x509.CertPool, error) {
	pool, found := x509.NewCertPool(), false
	for rest := bytes.TrimSpace(contents); len(rest) > 0; rest = bytes.TrimSpace(rest) {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, errors.New("contains data that is not PEM")
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("contains a %q among the certificates", block.Type)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("contains an invalid certificate: %w", err)
		}
		pool.AddCert(certificate)
		found = true
	}
	if !found {
		return nil, errors.New("contains no certificate")
	}
	return pool, nil
}

// report counts a problem, and logs it if it is new.
func (c *ClientCA) report(ctx context.Context, problem error) {
	if problem == nil {
		c.problem = ""
		return
	}
	c.failures.Inc()
	if text := problem.Error(); text != c.problem {
		c.problem = text
		c.log.ErrorContext(ctx, "the client CA could not be reloaded; the last valid one stays in use", slog.Any("error", problem))
	}
}

// Authenticate is for [Options], together with ClientCertificates. Without a client
// certificate signed by the CA it returns [ErrUnauthenticated], with any other common name
// [ErrForbidden].
func (c *ClientCA) Authenticate(r *http.Request) error {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return fmt.Errorf("%w: no client certificate", ErrUnauthenticated)
	}
	certificates := r.TLS.PeerCertificates
	if err := c.current.Load().verify(certificates, c.options.Now()); err != nil {
		return fmt.Errorf("%w: %w", ErrUnauthenticated, err)
	}
	if name := certificates[0].Subject.CommonName; len(c.options.CommonNames) > 0 && !slices.Contains(c.options.CommonNames, name) {
		return fmt.Errorf("%w: common name %q", ErrForbidden, name)
	}
	return nil
}

// verify returns why the CA does not trust a chain. Callers repeat, so successful
// verifications are cached for a while.
func (c *clientCA) verify(certificates []*x509.Certificate, at time.Time) error {
	leaf := certificates[0]
	id := sha256.Sum256(leaf.Raw)
	c.mu.Lock()
	until, known := c.known[id]
	c.mu.Unlock()
	if known && at.Before(until) && !at.After(leaf.NotAfter) {
		return nil
	}
	options := x509.VerifyOptions{
		Roots: c.pool, Intermediates: x509.NewCertPool(), CurrentTime: at,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, certificate := range certificates[1:] {
		options.Intermediates.AddCert(certificate)
	}
	if _, err := leaf.Verify(options); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= knownCallers {
		clear(c.known)
	}
	c.known[id] = at.Add(rememberedFor)
	return nil
}
