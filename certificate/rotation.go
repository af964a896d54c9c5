// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"crypto/x509"
	"fmt"
	"slices"
	"time"
)

// situation is what one look at the world told, for the decision on the next step
// of a rotation.
type situation struct {
	now time.Time
	// seen is how long this process has known of the stage that the rotation is in,
	// by a clock that nobody sets. A replica that takes over has mostly known of it
	// as long as the one before; one that has just started waits anew.
	seen time.Duration
	// published are the CA bundles, PEM, that clients are told; unknown says why they
	// are not known.
	published [][]byte
	unknown   error
	// serving is whether this replica serves a certificate of the signer.
	serving bool
	// propagation is how long a change needs until all clients know it.
	propagation time.Duration
}

// next decides on the next step. It returns the state to be written, or nil and
// what is waited for, which is empty if there is nothing to do at all. It changes
// nothing, so that whoever has read the same state decides alike: a step that was
// not written is decided again, by anybody, and of two that write only the first
// succeeds.
//
// A certificate that works is never taken away by a step: the signer changes only
// after every bundle has held the new one for the propagation time, and the old
// one is dropped only after the new one has signed for that time. The time is
// taken by a clock that nobody sets, not from the Secret.
func (s *state) next(at situation, newAuthority func() (*issuer, error)) (*state, string, error) {
	// Nothing that the signer signs can be verified: waiting would save nobody.
	dead := at.now.After(s.signer.certificate.NotAfter)
	switch s.phase {
	case PhasePublishing, PhasePropagating:
		switch {
		case validAt(s.other.certificate, at.now) != nil: // nothing was signed by it
			return s.begin(at, newAuthority)
		case dead:
			return s.sign(at.now), "", nil
		case at.unknown != nil:
			return nil, "the CA bundles that clients trust are not known: " + at.unknown.Error(), nil
		}
		missing := lacking(at.published, s.other)
		switch {
		case s.phase == PhasePublishing && missing == 0:
			return s.at(PhasePropagating, at.now), "", nil
		case s.phase == PhasePublishing:
			return nil, fmt.Sprintf("%d of %d CA bundles do not hold the next authority", missing, len(at.published)), nil
		case missing > 0:
			return s.at(PhasePublishing, at.now), "", nil
		case at.seen < at.propagation:
			return nil, "all API servers shall have seen the next authority", nil
		}
		return s.sign(at.now), "", nil

	case PhaseSigning:
		switch {
		case dead:
		case at.unknown != nil:
			return nil, "the CA bundles that clients trust are not known: " + at.unknown.Error(), nil
		case lacking(at.published, s.signer) > 0:
			return nil, fmt.Sprintf("%d of %d CA bundles do not hold the authority that signs", lacking(at.published, s.signer), len(at.published)), nil
		case !at.serving:
			return nil, "this replica still serves a certificate of the old authority", nil
		case at.seen < at.propagation:
			return nil, "all replicas shall serve certificates of the new authority", nil
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

// begin publishes a fresh authority beside the one that signs.
func (s *state) begin(at situation, newAuthority func() (*issuer, error)) (*state, string, error) {
	follower, err := newAuthority()
	if err != nil {
		return nil, "", err
	}
	bundle := slices.Clone(s.signer.bundle)
	if s.other != nil { // which will never sign
		bundle = slices.DeleteFunc(bundle, s.other.certificate.Equal)
	}
	bundle = append(bundle, follower.certificate)
	signer, other := *s.signer, *follower
	signer.bundle, other.bundle = bundle, bundle
	return &state{signer: &signer, other: &other, phase: PhasePublishing, since: at.now}, "", nil
}

// sign lets the other authority sign.
func (s *state) sign(now time.Time) *state {
	return &state{signer: s.other, other: s.signer, phase: PhaseSigning, since: now}
}

func (s *state) at(phase Phase, now time.Time) *state {
	return &state{signer: s.signer, other: s.other, phase: phase, since: now}
}

// lacking counts the bundles that do not hold an authority.
func lacking(bundles [][]byte, authority *issuer) int {
	n := 0
	for _, bundle := range bundles {
		if !Holds(bundle, authority.certificate) {
			n++
		}
	}
	return n
}

// aged reports whether two thirds of a certificate's time are over.
func aged(certificate *x509.Certificate, now time.Time) bool {
	whole := certificate.NotAfter.Sub(certificate.NotBefore)
	return now.Sub(certificate.NotBefore) > whole/3*2
}
