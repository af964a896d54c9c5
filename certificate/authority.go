// SPDX-License-Identifier: Apache-2.0

package certificate

import (
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
	// firstDelay and longestDelay bound the pauses between attempts to reach the
	// Secret; each is twice the one before, less up to a half at random, so that
	// replicas do not come all at once.
	firstDelay   = 500 * time.Millisecond
	longestDelay = time.Minute

	// longestAbsence is how long a replica that knows no authority leaves it to others
	// to create a Secret again that was deleted.
	longestAbsence = 30 * time.Second

	// callTimeout bounds a single read or write of the Secret.
	callTimeout = 30 * time.Second

	// longestWatch bounds a watch, after which the Secret is read again. Half of
	// it is random.
	longestWatch = 10 * time.Minute
)

// Secrets is what an [Authority] does with the Secrets of its namespace. A typed
// client of client-go is one: clientset.CoreV1().Secrets(namespace).
//
// RBAC: get, watch and, to rotate, update on the Secret by name, create on secrets.
type Secrets interface {
	SecretUpdater
	Create(ctx context.Context, secret *corev1.Secret, options metav1.CreateOptions) (*corev1.Secret, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// AuthorityOptions says what an [Authority] signs, and where it is kept.
type AuthorityOptions struct {
	// Secrets is where the authority is kept. Nil means in memory: an authority of
	// this process alone, which has a certificate at once.
	Secrets Secrets
	// SecretName is the name of the Secret. Required with Secrets.
	SecretName string

	// DNSNames and IPAddresses are what the certificate is good for. For a Service
	// the API server wants <service>.<namespace>.svc. At least one is required.
	DNSNames    []string
	IPAddresses []net.IP

	// Lifetime is how long a new authority is valid; another one follows after two
	// thirds. Default ten years: each rotation changes every webhook configuration
	// twice.
	Lifetime time.Duration
	// CertificateLifetime is how long a serving certificate is valid; it is
	// renewed after two thirds. Default 48 h.
	CertificateLifetime time.Duration

	// Propagation is how long a change of the Secret or of a webhook configuration may
	// take until all replicas and all API servers know it. A rotation waits that long
	// twice. Default two minutes.
	Propagation time.Duration
	// Leading tells whether this replica may move a rotation on now. It must be fast.
	// Nil means always. Two that think so do no harm: only one write succeeds.
	Leading func() bool
	// Published returns every CA bundle, PEM, that clients are told at the moment:
	// what the live webhook configurations and CRD conversion stanzas of this server
	// hold. None means that there is nobody to tell yet. An error means that they are
	// not known: the certificate in use stays, and a rotation waits. It must be fast.
	// Nil means that nobody knows: then no rotation begins, and a new authority in the
	// Secret is used at once.
	Published func() ([][]byte, error)

	// Now is the clock. Default [time.Now].
	Now func() time.Time
	// Logger default is [slog.Default].
	Logger *slog.Logger
	// Registry takes the metrics; nil leaves them out.
	Registry prometheus.Registerer
}

// Authority is a [Source] that signs for itself, with an authority that all
// replicas share through a Secret. The serving key never leaves the process.
//
// Whoever finds no Secret creates it; all others read it. A Secret that cannot be
// read or used is never written over: what was there before is kept, and the
// reason told. A Secret that is deleted is created again as it was, in whatever
// phase of a rotation, since the webhook configurations still trust what it said;
// to get a new authority, ask for a rotation.
//
// The one that leads replaces the authority when two thirds of its time are over,
// or when [RotationRequestAnnotation] asks for it, through the phases of [Phase].
// No replica changes to a certificate that a bundle of Published cannot verify as
// long as the one in use can.
type Authority struct {
	*current
	options AuthorityOptions
	metrics *authorityMetrics
	// stirred says that the Secret was read.
	stirred chan struct{}

	mu sync.Mutex
	// state is what the last usable Secret said, live that Secret if it is the one
	// that is there, and seen when its stage was first seen.
	state *state
	// keys are those of PathKeys, without the lock: whom Published asks may ask for them.
	keys atomic.Pointer[[][]byte]
	live *corev1.Secret
	seen time.Time
	// missing is when a replica that knows nothing first found no Secret.
	missing time.Time
	// accepted is the signer whose certificates all published bundles verify, as far as
	// this replica has looked, and since when.
	accepted      *x509.Certificate
	acceptedSince time.Time
	// replaced are the keys of an authority that somebody has replaced by hand.
	replaced *replacedKeys
	// announced are the authorities that the last rotation was about.
	announced []*x509.Certificate
	// signer has signed what is served. It is another one than that of state as long
	// as held is not nil, which says why.
	signer *issuer
	held   error
	// retained is published until the given time though the Secret does not say so:
	// other replicas may serve what it has signed.
	retained      []*x509.Certificate
	retainedUntil time.Time
	// renewAt is when the certificate is due to be replaced.
	renewAt time.Time
	// stuck says why a rotation could not be moved on, waitsFor what it waits for.
	stuck    error
	waitsFor string
}

// NewAuthority returns an authority that has not looked for its Secret yet. The
// error reports all problems of the options.
func NewAuthority(options AuthorityOptions) (*Authority, error) {
	if options.Lifetime == 0 {
		options.Lifetime = 10 * 365 * 24 * time.Hour
	}
	if options.CertificateLifetime == 0 {
		options.CertificateLifetime = 48 * time.Hour
	}
	if options.Propagation == 0 {
		options.Propagation = 2 * time.Minute
	}
	if err := options.validate(); err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	a := &Authority{current: newCurrent(options.Now, options.Logger), options: options, stirred: make(chan struct{}, 1)}
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

// follow keeps up with the Secret, and tries again when it is lost.
func (a *Authority) follow(ctx context.Context) {
	delay := firstDelay
	// While a rotation is on, a replica must not miss what happens for longer than
	// the others wait.
	longest := max(firstDelay, min(longestDelay, a.options.Propagation/2))
	for {
		began := time.Now()
		err := a.observe(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			a.report(fmt.Errorf("certificate authority in Secret %s: %w", a.options.SecretName, err))
		}
		if err == nil || time.Since(began) > longestDelay {
			delay = firstDelay // it went well
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

// observe reads the Secret, or creates it, and follows its changes until the
// watch ends.
func (a *Authority) observe(ctx context.Context) error {
	secret, err := a.readOrCreate(ctx)
	if err != nil {
		return err
	}
	a.adopt(secret)

	timeout := int64((longestWatch/2 + rand.N(longestWatch/2)).Seconds())
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
					return nil // it has been quiet for long: the Secret is read again
				}
				return fmt.Errorf("watch: %w", err)
			}
		}
	}
}

func (a *Authority) readOrCreate(ctx context.Context) (*corev1.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	secret, err := a.options.Secrets.Get(ctx, a.options.SecretName, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return secret, wrap("read", err)
	}
	if err := a.othersKnow(); err != nil {
		return nil, err
	}
	wanted, err := a.newSecret()
	if err != nil {
		return nil, err
	}
	secret, err = a.options.Secrets.Create(ctx, wanted, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) { // another replica was first
		secret, err = a.options.Secrets.Get(ctx, a.options.SecretName, metav1.GetOptions{})
		return secret, wrap("read", err)
	}
	if err == nil {
		a.log.Info("certificate authority created", slog.String("secret", a.options.SecretName))
	}
	return secret, wrap("create", err)
}

// errNotSeenYet is for a moment at each start.
var errNotSeenYet = errors.New("whether clients trust an authority already is not known yet")

// othersKnow is an error as long as a replica that knows nothing must leave it to
// one that does to create a Secret that is not there: clients trust an authority,
// or may, and a new one would not be it.
func (a *Authority) othersKnow() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state != nil || a.options.Published == nil {
		return nil
	}
	published, err := a.options.Published()
	if err == nil && len(published) == 0 {
		return nil
	}
	if a.missing.IsZero() {
		a.missing = time.Now()
	}
	if time.Since(a.missing) >= min(a.options.Propagation, longestAbsence) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("it is not there, and %w: %w", errNotSeenYet, err)
	}
	return errors.New("it is not there, though clients may trust an authority already: a replica that knows it may write it again")
}

// newSecret holds what the last one did, as long as its authority can sign, or a
// new authority.
func (a *Authority) newSecret() (*corev1.Secret, error) {
	a.mu.Lock()
	wanted := a.state
	a.mu.Unlock()
	if wanted == nil || validAt(wanted.signer.certificate, a.now().Add(a.options.CertificateLifetime)) != nil {
		signer, err := newIssuer(a.now(), a.options.Lifetime)
		if err != nil {
			return nil, err
		}
		wanted = &state{signer: signer, phase: PhaseSteady}
	}
	data, err := wanted.data()
	if err != nil {
		return nil, err
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name:   a.options.SecretName,
			Labels: map[string]string{"app.kubernetes.io/managed-by": "sallyport"},
		},
		Type: corev1.SecretTypeTLS,
		Data: data,
	}, nil
}

// adopt uses the authority that a Secret holds. If it cannot be used, the one in
// use stays.
func (a *Authority) adopt(secret *corev1.Secret) {
	found, err := parseState(secret)
	a.mu.Lock()
	if err == nil {
		err = a.use(found)
	}
	if a.live = nil; found != nil && a.state == found {
		a.live = secret
	}
	a.mu.Unlock()
	select {
	case a.stirred <- struct{}{}:
	default: // one is waiting
	}
	if err != nil {
		err = fmt.Errorf("certificate authority in Secret %s cannot be used: %w: repair it, or delete it while no replica runs", a.options.SecretName, err)
	}
	a.report(err)
}

// lost notes that the Secret is there no more.
func (a *Authority) lost() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.live = nil
}

// wrap says what was tried, if it failed.
func wrap(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
