// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"crypto/x509"
	"fmt"
	"slices"
	"time"
)

// situation is the observed state for deciding on the next step of a rotation.
type situation struct {
	now time.Time
	// seen is how long this process has known the current stage of the rotation, by the
	// monotonic clock. A new leader has mostly known it as long as the previous one; a
	// replica that has just started waits again.
	seen time.Duration
	// published are the PEM-encoded CA bundles that clients trust; unknown is why they are
	// not known.
	published [][]byte
	unknown   error
	// serving is whether this replica serves a certificate of the signer.
	serving bool
	// propagation is the time after which all clients have observed a change.
	propagation time.Duration
}

// next decides on the next step. It returns the state to write, or nil and what the
// rotation waits for, which is empty if there is nothing to do. It is a pure function, so
// that replicas with the same state make the same decision: a step that was not written is
// decided again by any replica, and of two writes only the first succeeds.
//
// A step never breaks a working certificate: the signer changes only after every bundle has
// contained the new one for the propagation time, and the old one is removed only after the
// new one has signed for that time. The time is measured by the monotonic clock, not taken
// from the Secret.
func (s *state) next(at situation, newAuthority func() (*issuer, error)) (*state, string, error) {
	// No certificate of the signer can be verified, so there is no reason to wait.
	dead := at.now.After(s.signer.certificate.NotAfter)
	switch s.phase {
	case PhasePublishing, PhasePropagating:
		switch {
		case validAt(s.other.certificate, at.now) != nil: // it has signed nothing
			return s.begin(at, newAuthority)
		case dead:
			return s.sign(at.now), "", nil
		case at.unknown != nil:
			return nil, "the CA bundles that clients trust are unknown: " + at.unknown.Error(), nil
		}
		missing := lacking(at.published, s.other)
		switch {
		case s.phase == PhasePublishing && missing == 0:
			return s.at(PhasePropagating, at.now), "", nil
		case s.phase == PhasePublishing:
			return nil, fmt.Sprintf("%d of %d CA bundles lack the next authority", missing, len(at.published)), nil
		case missing > 0:
			return s.at(PhasePublishing, at.now), "", nil
		case at.seen < at.propagation:
			return nil, "all API servers to observe the next authority", nil
		}
		return s.sign(at.now), "", nil

	case PhaseSigning:
		switch {
		case dead:
		case at.unknown != nil:
			return nil, "the CA bundles that clients trust are unknown: " + at.unknown.Error(), nil
		case lacking(at.published, s.signer) > 0:
			return nil, fmt.Sprintf("%d of %d CA bundles lack the signing authority", lacking(at.published, s.signer), len(at.published)), nil
		case !at.serving:
			return nil, "this replica to serve a certificate of the new authority", nil
		case at.seen < at.propagation:
			return nil, "all replicas to serve certificates of the new authority", nil
		}
		signer := *s.signer
		signer.bundle = []*x509.Certificate{signer.certificate}
		return &state{signer: &signer, phase: PhaseSteady}, "", nil

	default:
		switch {
		case dead && (s.signer.own() || !s.requested.IsZero()):
			fresh, _, err := s.begin(at, newAuthority)
			if err != nil {
				return nil, "", err
			}
			return fresh.sign(at.now), "", nil
		case !s.requested.IsZero(), s.signer.own() && aged(s.signer.certificate, at.now):
			return s.begin(at, newAuthority)
		}
		return nil, "", nil
	}
}

// begin publishes a new authority beside the signer.
func (s *state) begin(at situation, newAuthority func() (*issuer, error)) (*state, string, error) {
	follower, err := newAuthority()
	if err != nil {
		return nil, "", err
	}
	bundle := slices.Clone(s.signer.bundle)
	if s.other != nil { // it will never sign
		bundle = slices.DeleteFunc(bundle, s.other.certificate.Equal)
	}
	bundle = append(bundle, follower.certificate)
	signer, other := *s.signer, *follower
	signer.bundle, other.bundle = bundle, bundle
	return &state{signer: &signer, other: &other, phase: PhasePublishing, since: at.now}, "", nil
}

// sign makes the other authority the signer.
func (s *state) sign(now time.Time) *state {
	return &state{signer: s.other, other: s.signer, phase: PhaseSigning, since: now}
}

func (s *state) at(phase Phase, now time.Time) *state {
	return &state{signer: s.signer, other: s.other, phase: phase, since: now}
}

// lacking counts the bundles without an authority.
func lacking(bundles [][]byte, authority *issuer) int {
	n := 0
	for _, bundle := range bundles {
		if !Holds(bundle, authority.certificate) {
			n++
		}
	}
	return n
}

// aged reports whether two thirds of a certificate's lifetime are over.
func aged(certificate *x509.Certificate, now time.Time) bool {
	whole := certificate.NotAfter.Sub(certificate.NotBefore)
	return now.Sub(certificate.NotBefore) > whole/3*2
}
