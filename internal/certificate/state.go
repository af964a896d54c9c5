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

// Further keys of the authority's Secret during a rotation: the next authority until it
// signs, the old one until clients no longer need to trust it.
const (
	nextCertificateKey = "next.crt"
	nextKeyKey         = "next.key"
	oldCertificateKey  = "old.crt"
	oldKeyKey          = "old.key"
	phaseKey           = "rotation-phase"
	sinceKey           = "rotation-since"
)

// rotationRequestAnnotation on the authority's Secret requests a rotation. Its value is the
// time of the request, RFC 3339. The leader removes it when the rotation begins.
const rotationRequestAnnotation = "sallyport.io/rotation-requested-at"

// Phase is the phase of an authority's rotation.
type Phase string

// The phases of a rotation, in order.
const (
	// PhaseSteady: one authority signs, and no other is trusted.
	PhaseSteady Phase = "steady"
	// PhasePublishing: the next authority is added to the CA bundles of clients. It lasts
	// until every CA bundle contains it.
	PhasePublishing Phase = "publishing"
	// PhasePropagating: every CA bundle contains both authorities. It lasts until all API
	// servers have had time to observe that.
	PhasePropagating Phase = "propagating"
	// PhaseSigning: the next authority has become the signer; the old one is still trusted,
	// for replicas that have not switched yet.
	PhaseSigning Phase = "signing"
)

// Phases are all phases, in order.
var phases = []Phase{PhaseSteady, PhasePublishing, PhasePropagating, PhaseSigning}

// state is the state of an authority and its rotation in a Secret. It is immutable.
type state struct {
	// signer signs, and has the bundle for clients to trust.
	signer *issuer
	phase  Phase
	// since is when the phase began, by the clock of the writer; for display only. Zero if
	// the phase is steady.
	since time.Time
	// other is the next authority while it is published and propagated, the old one while
	// the new one signs, or nil.
	other *issuer
	// requested is when a rotation was requested, or zero.
	requested time.Time
}

// parseState reads the state from a Secret. Any inconsistency is an error: a rotation must
// not continue from a state that no replica has written.
func parseState(secret *corev1.Secret) (*state, error) {
	signer, err := parseIssuer(secret.Data)
	if err != nil {
		return nil, err
	}
	s := &state{signer: signer, phase: PhaseSteady}
	if requested, err := time.Parse(time.RFC3339, secret.Annotations[rotationRequestAnnotation]); err == nil {
		s.requested = requested // anything else is not a request
	}
	if text, ok := secret.Data[phaseKey]; ok {
		s.phase = Phase(text)
	}
	if !slices.Contains(phases, s.phase) {
		return nil, fmt.Errorf("%s: must be one of the phases %q", phaseKey, phases)
	}
	if s.phase == PhaseSteady {
		return s, nil
	}
	if s.since, err = time.Parse(time.RFC3339, string(secret.Data[sinceKey])); err != nil || s.since.Year() < 1970 || s.since.Year() > 9998 {
		return nil, fmt.Errorf("%s: must be an RFC 3339 time in phase %s", sinceKey, s.phase)
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
		return nil, fmt.Errorf("%s: must contain the next authority in phase %s", bundleKey, s.phase)
	}
	return s, nil
}

// otherKeys are the Secret's keys for the other authority.
func (s *state) otherKeys() (certificate, key string) {
	if s.phase == PhaseSigning {
		return oldCertificateKey, oldKeyKey
	}
	return nextCertificateKey, nextKeyKey
}

// data is the inverse of parseState, without the request.
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

// into returns a copy of the Secret with the state. Other keys are preserved, and the
// request is removed.
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
	delete(out.Annotations, rotationRequestAnnotation)
	return out, nil
}

// sameStage reports whether two states are the same stage of the same rotation.
func (s *state) sameStage(other *state) bool {
	if other == nil || s.phase != other.phase || !s.since.Equal(other.since) || !s.signer.equal(other.signer) {
		return false
	}
	return s.other == nil && other.other == nil || s.other != nil && other.other != nil && s.other.certificate.Equal(other.other.certificate)
}

// Status is the status of an authority's Secret. It contains no private keys.
type Status struct {
	Phase Phase
	// Since is when the phase began, or zero if the phase is steady.
	Since time.Time
	// Requested is when a rotation was requested that has not begun, or zero.
	Requested time.Time
	// Signer is the signing authority, Next the next one (nil unless it is being published
	// or propagated), Old the previous one (nil unless the phase is signing).
	Signer, Next, Old *x509.Certificate
	// Bundle is the CA bundle for clients to trust.
	Bundle []*x509.Certificate
}

// ReadStatus reads the Secret of an authority. An error means that the Secret is unusable.
func ReadStatus(secret *corev1.Secret) (*Status, error) {
	s, err := parseState(secret)
	if err != nil {
		return nil, fmt.Errorf("the Secret has no usable authority: %w", err)
	}
	roots := x509.NewCertPool()
	for _, root := range s.signer.bundle {
		roots.AddCert(root)
	}
	if _, err := s.signer.certificate.Verify(x509.VerifyOptions{
		Roots: roots, CurrentTime: s.signer.certificate.NotBefore, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	}); err != nil {
		return nil, fmt.Errorf("the Secret has no usable authority: %s does not verify %s: %w", bundleKey, signerCertificateKey, err)
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

// Holds reports whether a PEM-encoded CA bundle contains a certificate. Other data in the
// bundle is ignored, as clients do.
func Holds(bundle []byte, certificate *x509.Certificate) bool {
	return slices.ContainsFunc(certificatesIn(bundle), certificate.Equal)
}
