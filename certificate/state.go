// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Further keys of the authority's Secret. They are there while one authority
// follows another: the next one until it signs, the old one until nobody needs to
// trust it any more.
const (
	nextCertificateKey = "next.crt"
	nextKeyKey         = "next.key"
	oldCertificateKey  = "old.crt"
	oldKeyKey          = "old.key"
	phaseKey           = "rotation-phase"
	sinceKey           = "rotation-since"
)

// RotationRequestAnnotation on the authority's Secret asks for a rotation. Its
// value is when that was asked, RFC 3339. Whoever begins the rotation takes it
// away.
const RotationRequestAnnotation = "sallyport.io/rotation-requested-at"

// Phase is how far the rotation of an authority is.
type Phase string

// The phases of a rotation, in their order.
const (
	// PhaseSteady: one authority signs, and no other is trusted.
	PhaseSteady Phase = "steady"
	// PhasePublishing: clients are told of the next authority, beside the one that
	// signs. It lasts until every CA bundle holds it.
	PhasePublishing Phase = "publishing"
	// PhasePropagating: every CA bundle holds both. It lasts until all API servers
	// have had the time to see that.
	PhasePropagating Phase = "propagating"
	// PhaseSigning: the next authority has become the one that signs; the old one is
	// trusted still, for replicas that do not know yet.
	PhaseSigning Phase = "signing"
)

// Phases are all phases, in their order.
var phases = []Phase{PhaseSteady, PhasePublishing, PhasePropagating, PhaseSigning}

// state is what a Secret says of an authority and its rotation. It is not changed
// once it is made.
type state struct {
	// signer signs, and its bundle is what clients shall trust.
	signer *issuer
	phase  Phase
	// since is when the phase began, by the clock of who wrote it; for people. Zero
	// if the phase is steady.
	since time.Time
	// other is the next authority while it is published and propagated, the old one
	// while the new one signs, and otherwise nil.
	other *issuer
	// requested is when a rotation was asked for, or zero.
	requested time.Time
}

// parseState reads what a Secret holds. Whatever does not fit together is an
// error: a rotation must not go on from a state that nobody has written.
func parseState(secret *corev1.Secret) (*state, error) {
	signer, err := parseIssuer(secret.Data)
	if err != nil {
		return nil, err
	}
	s := &state{signer: signer, phase: PhaseSteady}
	if requested, err := time.Parse(time.RFC3339, secret.Annotations[RotationRequestAnnotation]); err == nil {
		s.requested = requested // anything else is no request
	}
	if text, ok := secret.Data[phaseKey]; ok {
		s.phase = Phase(text)
	}
	if !slices.Contains(phases, s.phase) {
		return nil, fmt.Errorf("%s: none of the phases %q", phaseKey, phases)
	}
	if s.phase == PhaseSteady {
		return s, nil
	}
	if s.since, err = time.Parse(time.RFC3339, string(secret.Data[sinceKey])); err != nil || s.since.Year() < 1970 || s.since.Year() > 9998 {
		return nil, fmt.Errorf("%s: want a time as RFC 3339 has it, while the phase is %s", sinceKey, s.phase)
	}
	certificateKey, keyKey := s.otherKeys()
	if s.other, err = parsePair(secret.Data, certificateKey, keyKey); err != nil {
		return nil, err
	}
	s.other.bundle = signer.bundle
	follower := s.other
	if s.phase == PhaseSigning {
		follower = signer
	}
	switch {
	case s.other.certificate.Equal(signer.certificate):
		return nil, fmt.Errorf("%s and %s: the same authority", signerCertificateKey, certificateKey)
	case !slices.ContainsFunc(signer.bundle, follower.certificate.Equal):
		return nil, fmt.Errorf("%s: the authority that follows is not in it, while the phase is %s", bundleKey, s.phase)
	}
	return s, nil
}

// otherKeys are the keys of the Secret for the other authority.
func (s *state) otherKeys() (certificate, key string) {
	if s.phase == PhaseSigning {
		return oldCertificateKey, oldKeyKey
	}
	return nextCertificateKey, nextKeyKey
}

// data is what parseState reads, without the request.
func (s *state) data() (map[string][]byte, error) {
	data, err := s.signer.data()
	if err != nil || s.phase == PhaseSteady {
		return data, err
	}
	certificateKey, keyKey := s.otherKeys()
	if data[certificateKey], data[keyKey], err = s.other.pair(); err != nil {
		return nil, err
	}
	data[phaseKey] = []byte(s.phase)
	data[sinceKey] = []byte(s.since.UTC().Format(time.RFC3339Nano))
	return data, nil
}

// into returns a copy of the Secret that holds the state. Keys of others stay, and
// the request is done with.
func (s *state) into(secret *corev1.Secret) (*corev1.Secret, error) {
	data, err := s.data()
	if err != nil {
		return nil, err
	}
	out := secret.DeepCopy()
	for _, key := range []string{nextCertificateKey, nextKeyKey, oldCertificateKey, oldKeyKey, phaseKey, sinceKey} {
		delete(out.Data, key)
	}
	maps.Copy(out.Data, data)
	delete(out.Annotations, RotationRequestAnnotation)
	return out, nil
}

// sameStage reports whether two states are the same stage of the same rotation.
func (s *state) sameStage(other *state) bool {
	if other == nil || s.phase != other.phase || !s.since.Equal(other.since) || !s.signer.equal(other.signer) {
		return false
	}
	return s.other == nil && other.other == nil || s.other != nil && other.other != nil && s.other.certificate.Equal(other.other.certificate)
}

// Status is what the Secret of an authority tells. It holds no key.
type Status struct {
	Phase Phase
	// Since is when the phase began, or zero if it is steady.
	Since time.Time
	// Requested is when a rotation was asked for that has not begun, or zero.
	Requested time.Time
	// Signer is the authority that signs, Next the one that will (nil unless one is
	// published or propagated), Old the one that did (nil unless the phase is
	// signing).
	Signer, Next, Old *x509.Certificate
	// Bundle is what clients shall trust.
	Bundle []*x509.Certificate
}

// ReadStatus reads the Secret of an authority. An error means that no authority
// could use it.
func ReadStatus(secret *corev1.Secret) (*Status, error) {
	s, err := parseState(secret)
	if err != nil {
		return nil, fmt.Errorf("the Secret holds no usable authority: %w", err)
	}
	roots := x509.NewCertPool()
	for _, root := range s.signer.bundle {
		roots.AddCert(root)
	}
	if _, err := s.signer.certificate.Verify(x509.VerifyOptions{
		Roots: roots, CurrentTime: s.signer.certificate.NotBefore, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	}); err != nil {
		return nil, fmt.Errorf("the Secret holds no usable authority: %s does not verify %s: %w", bundleKey, signerCertificateKey, err)
	}
	status := &Status{Phase: s.phase, Since: s.since, Requested: s.requested, Signer: s.signer.certificate, Bundle: s.signer.bundle}
	switch {
	case s.phase == PhaseSigning:
		status.Old = s.other.certificate
	case s.other != nil:
		status.Next = s.other.certificate
	}
	return status, nil
}

// Holds reports whether a CA bundle, PEM, holds a certificate. What is no
// certificate in the bundle is passed over, as clients do.
func Holds(bundle []byte, certificate *x509.Certificate) bool {
	return slices.ContainsFunc(certificatesIn(bundle), certificate.Equal)
}
