// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// firstDelay and maxDelay limit the exponential backoff between attempts to reach
	// the Secret, with jitter of up to a half, so that replicas do not retry at the same
	// time.
	firstDelay = 500 * time.Millisecond
	maxDelay   = time.Minute

	// maxAbsence is how long a replica without an authority waits for other replicas to
	// recreate a deleted Secret.
	maxAbsence = 30 * time.Second

	// callTimeout limits a single read or write of the Secret.
	callTimeout = 30 * time.Second

	// maxWatch limits a watch, after which the Secret is read again. Half of it is
	// jitter.
	maxWatch = 10 * time.Minute
)

// Secrets is the client that an [Authority] needs for the Secrets of its namespace. A typed
// client of client-go implements it: clientset.CoreV1().Secrets(namespace).
//
// RBAC: get, watch and, to rotate, update on the Secret by name, create on secrets.
type Secrets interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Secret, error)
	Update(ctx context.Context, secret *corev1.Secret, options metav1.UpdateOptions) (*corev1.Secret, error)
	Create(ctx context.Context, secret *corev1.Secret, options metav1.CreateOptions) (*corev1.Secret, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// AuthorityOptions configure an [Authority].
type AuthorityOptions struct {
	// Secrets stores the authority. Nil means in memory: an authority of this process
	// alone, which has a certificate immediately.
	Secrets Secrets
	// SecretName is the name of the Secret. Required with Secrets.
	SecretName string

	// DNSNames and IPAddresses are the subject alternative names of the certificate. For a
	// Service, the API server expects <service>.<namespace>.svc. At least one is required.
	DNSNames    []string
	IPAddresses []net.IP

	// Lifetime is how long a new authority is valid. It is replaced after two thirds of its
	// lifetime. Default ten years, because each rotation changes every webhook
	// configuration twice.
	Lifetime time.Duration
	// CertificateLifetime is how long a serving certificate is valid. It is renewed after
	// two thirds of its lifetime. Default 48 h.
	CertificateLifetime time.Duration

	// Propagation is the time after which all replicas and API servers have observed a
	// change of the Secret or of a webhook configuration. A rotation waits that long twice.
	// Default two minutes.
	Propagation time.Duration
	// Leading reports whether this replica may advance a rotation now. It must be fast. Nil
	// means always. Two leaders do no harm: only one write succeeds.
	Leading func() bool
	// Published returns every PEM-encoded CA bundle that clients currently trust: those in
	// the live webhook configurations and CRD conversion stanzas of this server. None means
	// that there are no clients yet. An error means that they are unknown: the certificate
	// in use stays, and a rotation waits. It must be fast. If it is nil, no rotation
	// begins, and a new authority in the Secret is used immediately.
	Published func() ([][]byte, error)

	// Now is the clock. Default [time.Now].
	Now func() time.Time
	// Logger default is [slog.Default].
	Logger *slog.Logger
	// Registry registers the metrics, unless it is nil.
	Registry prometheus.Registerer
}

// Authority is a [Source] that signs its certificates with an authority that all replicas
// share through a Secret. The serving key never leaves the process.
//
// The first replica creates the Secret; all others read it. An unusable Secret is never
// overwritten: the authority in use stays, and the problem is reported. A deleted Secret is
// recreated unchanged, in whatever phase of a rotation, because the webhook configurations
// still trust its authority; to get a new authority, request a rotation.
//
// The leader replaces the authority after two thirds of its lifetime, or when
// [RequestRotation] requests it, through the phases of [Phase]. No replica
// switches to a certificate that a bundle of Published cannot verify as long as the bundles
// verify the one in use.
type Authority struct {
	*current
	options AuthorityOptions
	metrics *authorityMetrics
	// secretRead signals that the Secret was read.
	secretRead chan struct{}

	mu sync.Mutex
	// state is the content of the last usable Secret, live that Secret if it is current,
	// and seen when its stage was first observed.
	state *state
	// keys are the result of PathKeys, read without the lock: Published may call it.
	keys atomic.Pointer[[][]byte]
	live *corev1.Secret
	seen time.Time
	// missing is when a replica without an authority first found no Secret.
	missing time.Time
	// accepted is the signer whose certificates all published bundles verify, as far as
	// this replica has observed, and since when.
	accepted      *x509.Certificate
	acceptedSince time.Time
	// replaced are the keys of an authority that was replaced manually.
	replaced *replacedKeys
	// announced are the authorities of the last rotation.
	announced []*x509.Certificate
	// signer signed the serving certificate. It differs from that of state as long as held,
	// the reason, is not nil.
	signer *issuer
	held   error
	// retained is published until the given time although the Secret does not contain it:
	// other replicas may still serve certificates it signed.
	retained      []*x509.Certificate
	retainedUntil time.Time
	// renewAt is when the certificate is due for renewal.
	renewAt time.Time
	// rotationErr is why a rotation could not advance, waitsFor what it waits for.
	rotationErr error
	waitsFor    string
}

// NewAuthority returns an authority that has not read its Secret yet. The error reports all
// problems of the options.
func NewAuthority(options AuthorityOptions) (*Authority, error) {
	usual := DefaultSettings("")
	options.Lifetime = cmp.Or(options.Lifetime, usual.CALifetime)
	options.CertificateLifetime = cmp.Or(options.CertificateLifetime, usual.Lifetime)
	options.Propagation = cmp.Or(options.Propagation, usual.CAPropagation)
	if err := options.validate(); err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	a := &Authority{current: newCurrent(options.Now, options.Logger), options: options, secretRead: make(chan struct{}, 1)}
	if options.Secrets == nil {
		own, err := newIssuer(a.now(), options.Lifetime)
		if err != nil {
			return nil, err
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if err := a.use(&state{signer: own, phase: PhaseSteady}); err != nil {
			return nil, err
		}
	}
	var err error
	if a.metrics, err = newAuthorityMetrics(a); err != nil {
		return nil, fmt.Errorf("certificate authority: metrics: %w", err)
	}
	return a, nil
}

func (o *AuthorityOptions) validate() error {
	var errs []error
	if o.Secrets != nil && o.SecretName == "" {
		errs = append(errs, errors.New("the name of the Secret is required"))
	}
	if len(o.DNSNames)+len(o.IPAddresses) == 0 {
		errs = append(errs, errors.New("at least one DNS name or IP address is required"))
	}
	for _, name := range o.DNSNames {
		for _, problem := range validation.IsDNS1123Subdomain(strings.TrimPrefix(name, "*.")) {
			errs = append(errs, fmt.Errorf("DNS name %q: %s", name, problem))
		}
	}
	for _, address := range o.IPAddresses {
		if address.To16() == nil {
			errs = append(errs, fmt.Errorf("IP address of %d bytes: want 4 or 16", len(address)))
		}
	}
	if o.CertificateLifetime <= 0 || o.Lifetime < o.CertificateLifetime {
		errs = append(errs, fmt.Errorf("lifetime %s of certificates must be positive and at most that of the authority, %s",
			o.CertificateLifetime, o.Lifetime))
	}
	if o.Propagation < 0 {
		errs = append(errs, fmt.Errorf("propagation time %s must not be negative", o.Propagation))
	}
	return errors.Join(errs...)
}

// Run implements [Source].
func (a *Authority) Run(ctx context.Context) error {
	var group sync.WaitGroup
	group.Go(func() { a.keepRenewed(ctx) })
	if a.options.Secrets != nil {
		group.Go(func() { a.follow(ctx) })
		group.Go(func() { a.keepRotating(ctx) })
	}
	group.Wait()
	return nil
}

// follow watches the Secret, and retries when the watch fails.
func (a *Authority) follow(ctx context.Context) {
	delay := firstDelay
	// During a rotation, a replica must not miss changes for longer than the others wait.
	longest := max(firstDelay, min(maxDelay, a.options.Propagation/2))
	for {
		began := time.Now()
		err := a.observe(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			a.report(fmt.Errorf("certificate authority in Secret %s: %w", a.options.SecretName, err))
		}
		if err == nil || time.Since(began) > maxDelay {
			delay = firstDelay // it succeeded
		}
		timer := time.NewTimer(delay/2 + rand.N(delay/2))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		delay = min(2*delay, longest)
	}
}

// observe reads or creates the Secret, and follows its changes until the watch ends.
func (a *Authority) observe(ctx context.Context) error {
	secret, err := a.readOrCreate(ctx)
	if err != nil {
		return err
	}
	a.adopt(secret)

	timeout := int64((maxWatch/2 + rand.N(maxWatch/2)).Seconds())
	changes, err := a.options.Secrets.Watch(ctx, metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector(metav1.ObjectNameField, a.options.SecretName).String(),
		ResourceVersion: secret.ResourceVersion,
		TimeoutSeconds:  &timeout,
	})
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	defer changes.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-changes.ResultChan():
			if !open {
				return nil
			}
			switch event.Type {
			case watch.Added, watch.Modified:
				if changed, ok := event.Object.(*corev1.Secret); ok {
					a.adopt(changed)
				}
			case watch.Deleted:
				a.lost()
				return errors.New("it was deleted")
			case watch.Error:
				err := apierrors.FromObject(event.Object)
				if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
					return nil // the watch has expired: read the Secret again
				}
				return fmt.Errorf("watch: %w", err)
			}
		}
	}
}

// lost records that the Secret is gone.
func (a *Authority) lost() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.live = nil
}

// wrap adds the operation to an error.
func wrap(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
