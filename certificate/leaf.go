// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// lookAgain is how often a replica looks whether a certificate that waits may be
// served, and the leader whether a rotation can go on.
const lookAgain = time.Second

// use serves a certificate of the state's signer from now on or, if clients would
// refuse it, as soon as they do not. A state whose signer cannot sign is an error,
// and is kept only if that is because its time is over: a rotation begins there.
// It must be called with mu held.
func (a *Authority) use(found *state) error {
	if !found.sameStage(a.state) {
		a.seen = time.Now()
	}
	expired := a.now().After(found.signer.certificate.NotAfter)
	if a.state != nil && found.signer.equal(a.state.signer) && !expired {
		a.note(found)
		return nil
	}
	candidate, err := a.issue(found.signer)
	if err != nil {
		if expired {
			a.note(found)
		}
		return err
	}
	a.note(found)
	switch {
	case a.signer == nil:
		a.serve(a.first(found, candidate))
	case found.signer.certificate.Equal(a.signer.certificate):
		a.held = nil
		a.serve(found.signer, candidate)
	default:
		a.change(candidate)
	}
	return nil
}

// note keeps what a Secret said. It must be called with mu held.
func (a *Authority) note(found *state) {
	if a.state != nil && a.state.phase != found.phase {
		a.log.Info("rotation of the certificate authority", slog.String("phase", string(found.phase)))
	}
	if a.state != nil && !a.state.signer.certificate.Equal(found.signer.certificate) &&
		(found.other == nil || !a.state.signer.certificate.Equal(found.other.certificate)) {
		a.replaceKeys(found)
	}
	a.state = found
	a.storeKeys()
	if found.phase != PhaseSteady {
		a.announced = found.signer.bundle
	}
}

// first is the signer, with its certificate, for a replica that serves nothing yet:
// that of the Secret, or the old one if only that is trusted still.
func (a *Authority) first(found *state, candidate *tls.Certificate) (*issuer, *tls.Certificate) {
	if a.options.Published == nil || found.phase != PhaseSigning {
		return found.signer, candidate
	}
	published, err := a.options.Published()
	if err != nil || a.verifiedBy(published, candidate) == nil {
		return found.signer, candidate
	}
	old, err := a.issue(found.other)
	if err != nil || a.verifiedBy(published, old) != nil {
		return found.signer, candidate
	}
	a.hold(errors.New("clients trust only the old authority"))
	return found.other, old
}

func (a *Authority) issue(by *issuer) (*tls.Certificate, error) {
	return by.issue(a.options.DNSNames, a.options.IPAddresses, a.now(), a.options.CertificateLifetime)
}

// change serves a certificate of the state's signer instead of one of another
// signer, unless clients would refuse it. It must be called with mu held.
func (a *Authority) change(candidate *tls.Certificate) {
	if reason := a.refused(candidate); reason != nil {
		a.hold(reason)
		a.publish(a.serving.Load().certificate)
		return
	}
	a.held = nil
	// Others may still hold back what this one does not.
	if !slices.ContainsFunc(a.state.signer.bundle, a.signer.certificate.Equal) {
		a.retained, a.retainedUntil = a.signer.bundle, time.Now().Add(a.options.Propagation)
	}
	a.serve(a.state.signer, candidate)
}

// hold notes why the certificate in use stays.
func (a *Authority) hold(reason error) {
	if a.held == nil {
		a.log.Warn("certificate of another authority is not served yet", slog.Any("reason", reason))
	}
	a.held = reason
}

// refused says why a certificate must not take the place of the one in use: a
// client that accepts that one would refuse it.
func (a *Authority) refused(candidate *tls.Certificate) error {
	have := a.serving.Load()
	if a.options.Published == nil || have == nil || validAt(have.certificate.Leaf, a.now()) != nil {
		return nil
	}
	published, err := a.options.Published()
	if err != nil {
		// A rotation that this replica has seen coming has come to its end: the leader
		// knew the bundles.
		if a.state.phase == PhaseSteady && slices.ContainsFunc(a.announced, a.state.signer.certificate.Equal) {
			return nil
		}
		return fmt.Errorf("the CA bundles that clients trust are not known: %w", err)
	}
	for _, bundle := range published {
		if a.verifiedBy([][]byte{bundle}, candidate) != nil && a.verifiedBy([][]byte{bundle}, have.certificate) == nil {
			a.accepted = nil
			return errors.New("a CA bundle that clients trust does not verify it")
		}
	}
	// In a rotation the leader has waited until all API servers know the authority. One
	// that somebody else has put into the Secret was published a moment ago, if this
	// replica sees at all what was published before.
	signer := a.state.signer.certificate
	if slices.ContainsFunc(a.announced, signer.Equal) {
		return nil
	}
	if a.accepted == nil || !a.accepted.Equal(signer) {
		a.accepted, a.acceptedSince = signer, time.Now()
	}
	if time.Since(a.acceptedSince) < a.options.Propagation {
		return errors.New("all API servers shall have seen the authority that has signed it")
	}
	return nil
}

// verifiedBy says why not every one of the bundles verifies a certificate now.
func (a *Authority) verifiedBy(bundles [][]byte, candidate *tls.Certificate) error {
	for _, bundle := range bundles {
		if err := trusted(candidate, certificatesIn(bundle), a.now()); err != nil {
			return err
		}
	}
	return nil
}

// serve serves a certificate. It must be called with mu held.
func (a *Authority) serve(by *issuer, certificate *tls.Certificate) {
	now := a.now()
	a.signer = by
	a.renewAt = now.Add(certificate.Leaf.NotAfter.Sub(now) / 3 * 2)
	a.publish(certificate)
}

// publish tells clients to trust what the Secret says and, until it is over, what
// they need for certificates that are served still. It must be called with mu held.
func (a *Authority) publish(certificate *tls.Certificate) {
	bundle := a.state.signer.bundle
	add := func(more []*x509.Certificate) {
		for _, authority := range more {
			if !slices.ContainsFunc(bundle, authority.Equal) {
				bundle = append(bundle[:len(bundle):len(bundle)], authority)
			}
		}
	}
	if trusted(certificate, bundle, a.now()) != nil {
		add(a.signer.bundle)
	}
	add(a.retained)
	a.set(certificate, encodeBundle(bundle))
}

// keepRenewed replaces the certificate when it is due, or when it no longer has to
// wait.
func (a *Authority) keepRenewed(ctx context.Context) {
	for {
		changed := a.Changed()
		timer := time.NewTimer(a.untilRenewal())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-changed:
			timer.Stop()
		case <-timer.C:
			a.renew()
		}
	}
}

// untilRenewal is how long to wait for the next look at the clock. A timer alone
// is not enough: it stands still while the machine sleeps, and knows nothing of a
// clock that is set.
func (a *Authority) untilRenewal() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held != nil || a.retained != nil || a.replaced != nil {
		return lookAgain
	}
	return min(max(a.renewAt.Sub(a.now()), time.Second), time.Minute)
}

func (a *Authority) renew() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.retained != nil && !time.Now().Before(a.retainedUntil) {
		a.retained = nil
		a.publish(a.serving.Load().certificate)
	}
	if a.ageKeys() {
		a.publish(a.serving.Load().certificate) // who registers looks at the paths again
	}
	if a.held != nil {
		candidate, err := a.issue(a.state.signer)
		if err == nil {
			if a.refused(candidate) == nil {
				a.change(candidate)
				return
			}
		} else {
			a.report(err)
		}
	}
	if a.signer == nil || a.now().Before(a.renewAt) {
		return
	}
	certificate, err := a.issue(a.signer)
	if err != nil {
		a.report(err)
		return
	}
	a.serve(a.signer, certificate)
}
