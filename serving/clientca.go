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

	"github.com/sallyport-io/sallyport/internal/follow"
)

const (
	// knownCallers bounds the certificates whose check is remembered: API servers have
	// one each.
	knownCallers = 64
	// rememberedFor is how long the check of a certificate holds.
	rememberedFor = time.Minute
)

// ClientCAOptions say who may call with a client certificate.
type ClientCAOptions struct {
	// File holds the certificates of those who sign callers' certificates, PEM.
	// Required.
	File string
	// CommonNames are those of the callers that may call. Empty means all whose
	// certificate was signed.
	CommonNames []string
	// PollInterval is how often the file is read even if nothing tells of a change.
	// Default 10 s.
	PollInterval time.Duration
	// Now is the clock. Default [time.Now].
	Now func() time.Time
	// Logger default is [slog.Default].
	Logger *slog.Logger
	// Registry takes the metrics; nil leaves them out.
	Registry prometheus.Registerer
}

// ClientCA knows callers by their client certificates. The file is followed; one that
// is missing or no good does not take the place of one that was. Make one with
// [NewClientCA].
type ClientCA struct {
	options  ClientCAOptions
	log      *slog.Logger
	failures prometheus.Counter
	problem  string // the last one that was logged

	current atomic.Pointer[clientCA]
}

// clientCA is a state of the file.
type clientCA struct {
	contents []byte
	pool     *x509.CertPool

	mu sync.Mutex
	// known are the callers that the pool trusts, and until when that holds. Callers it
	// does not trust are not in it, so that nobody can fill it.
	known map[[sha256.Size]byte]time.Time
}

// NewClientCA reads the file. A file that is missing or holds no certificate is an
// error, as is every other problem.
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

// Run follows the file until ctx ends, and then returns nil.
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

// parseClientCA takes certificates, PEM, and nothing else: a file that is cut off in
// the middle must not pass for one that trusts fewer.
func parseClientCA(contents []byte) (*x509.CertPool, error) {
	pool, found := x509.NewCertPool(), false
	for rest := bytes.TrimSpace(contents); len(rest) > 0; rest = bytes.TrimSpace(rest) {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, errors.New("holds something that is not PEM")
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("holds a %q among the certificates", block.Type)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("holds a certificate that cannot be read: %w", err)
		}
		pool.AddCert(certificate)
		found = true
	}
	if !found {
		return nil, errors.New("holds no certificate")
	}
	return pool, nil
}

// report counts a problem, and logs one that is new.
func (c *ClientCA) report(ctx context.Context, problem error) {
	if problem == nil {
		c.problem = ""
		return
	}
	c.failures.Inc()
	if text := problem.Error(); text != c.problem {
		c.problem = text
		c.log.ErrorContext(ctx, "the client CA cannot be read again; the last good one is kept", slog.Any("error", problem))
	}
}

// Authenticate is for [Options], together with ClientCertificates. A caller without a
// certificate that the CA has signed for clients is not known; one whose certificate
// has another common name may not call.
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

// verify says why the CA does not trust a chain at a time. The same caller comes
// again and again: a check that went well is remembered for a while.
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
