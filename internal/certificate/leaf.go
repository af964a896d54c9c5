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

// lookAgain is how often a replica checks whether a held certificate may be served, and the
// leader whether a rotation can advance.
const lookAgain = time.Second

// use serves a certificate of the state's signer or, if clients would reject it, does so as
// soon as they accept it. A state whose signer cannot sign is an error, and is only kept if
// the signer has expired, so that a rotation can begin. It must be called with mu held.
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

// note records the content of a Secret. It must be called with mu held.
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

// first returns the signer, with a certificate, for a replica that serves nothing yet: that
// of the Secret, or the old one if clients still trust only that.
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

// change switches to a certificate of the state's signer, unless clients would reject it.
// It must be called with mu held.
func (a *Authority) change(candidate *tls.Certificate) {
	if reason := a.refused(candidate); reason != nil {
		a.hold(reason)
		a.publish(a.serving.Load().certificate)
		return
	}
	a.held = nil
	// Other replicas may still hold their certificates.
	if !slices.ContainsFunc(a.state.signer.bundle, a.signer.certificate.Equal) {
		a.retained, a.retainedUntil = a.signer.bundle, time.Now().Add(a.options.Propagation)
	}
	a.serve(a.state.signer, candidate)
}

// hold records why the certificate in use stays.
func (a *Authority) hold(reason error) {
	if a.held == nil {
		a.log.Warn("certificate of another authority is not served yet", slog.Any("reason", reason))
	}
	a.held = reason
}

// refused returns why a certificate must not replace the one in use: a client that accepts
// the current one would reject it.
func (a *Authority) refused(candidate *tls.Certificate) error {
	have := a.serving.Load()
	if a.options.Published == nil || have == nil || validAt(have.certificate.Leaf, a.now()) != nil {
		return nil
	}
	published, err := a.options.Published()
	if err != nil {
		// A rotation that this replica has observed is complete: the leader checked the
		// bundles.
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
	// In a rotation, the leader has waited until all API servers know the authority. An
	// authority that was put into the Secret manually has just been published, if this
	// replica observes what was published at all.
	signer := a.state.signer.certificate
	if slices.ContainsFunc(a.announced, signer.Equal) {
		return nil
	}
	if a.accepted == nil || !a.accepted.Equal(signer) {
		a.accepted, a.acceptedSince = signer, time.Now()
	}
	if time.Since(a.acceptedSince) < a.options.Propagation {
		return errors.New("waiting for all API servers to observe the authority that signed it")
	}
	return nil
}

// verifiedBy returns why not every bundle verifies a certificate now.
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

// publish sets the bundle for clients to that of the Secret and, for a time, the
// authorities of certificates that are still served. It must be called with mu held.
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

// keepRenewed replaces the certificate when it is due, or when it is no longer held.
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

// untilRenewal is how long to wait until checking the clock again. A timer alone is not
// enough: it stops while the machine sleeps, and ignores clock changes.
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
		a.publish(a.serving.Load().certificate) // makes the registrar check the paths again
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
