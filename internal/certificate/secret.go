// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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

// errNotSeenYet occurs briefly at each start.
var errNotSeenYet = errors.New("it is not known yet whether clients already trust an authority")

// othersKnow returns an error as long as a replica without an authority must leave creating
// a missing Secret to a replica that has one: clients may already trust that authority, and
// would not trust a new one.
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
	if time.Since(a.missing) >= min(a.options.Propagation, maxAbsence) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("it is missing, and %w: %w", errNotSeenYet, err)
	}
	return errors.New("it is missing, but clients may already trust an authority: a replica that has it may recreate it")
}

// newSecret has the content of the last Secret if its authority can still sign, or else a
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

// adopt uses the authority of a Secret. If it is unusable, the one in use stays.
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
	case a.secretRead <- struct{}{}:
	default: // one is already pending
	}
	if err != nil {
		err = fmt.Errorf("certificate authority in Secret %s cannot be used: %w: repair it, or delete it while no replica runs", a.options.SecretName, err)
	}
	a.report(err)
}
