// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"crypto/x509"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const tenYears = 10 * 365 * 24 * time.Hour

// rotating is a state in the middle of a rotation from old to fresh.
func rotating(phase Phase, old, fresh *issuer, since time.Time) *state {
	bundle := []*x509.Certificate{old.certificate, fresh.certificate}
	signer, other := *old, *fresh
	signer.bundle, other.bundle = bundle, bundle
	s := &state{signer: &signer, other: &other, phase: phase, since: since}
	if phase == PhaseSigning {
		s.signer, s.other = s.other, s.signer
	}
	return s
}

// secretOf returns the Secret for a state.
func secretOf(t testing.TB, s *state) *corev1.Secret {
	t.Helper()
	secret, err := s.into(&corev1.Secret{Data: map[string][]byte{}})
	if err != nil {
		t.Fatal(err)
	}
	if !s.requested.IsZero() {
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, rotationRequestAnnotation, s.requested.Format(time.RFC3339))
	}
	return secret
}

func TestNextStepOfARotation(t *testing.T) {
	const propagation = time.Minute
	now := time.Now()
	old, fresh, made := newTestIssuer(t, tenYears), newTestIssuer(t, tenYears), newTestIssuer(t, tenYears)
	expired, err := newIssuer(now.Add(-100*time.Hour), 50*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	aged, err := newIssuer(now.Add(-80*time.Hour), 100*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	foreign := *aged
	foreign.certificate = newTestRoot(t).certificate
	both := encodeBundle([]*x509.Certificate{old.certificate, fresh.certificate})
	onlyOld, onlyFresh := encodeBundle(old.bundle), encodeBundle(fresh.bundle)
	long := situation{now: now, seen: time.Hour, propagation: propagation, serving: true, published: [][]byte{both, both}}
	with := func(change func(*situation)) situation {
		at := long
		change(&at)
		return at
	}
	requested := &state{signer: old, phase: PhaseSteady, requested: now}
	for name, test := range map[string]struct {
		state    *state
		at       situation
		want     Phase // empty: nothing changes
		signer   *issuer
		bundle   []*issuer
		waitsFor string
	}{
		"a young authority stays":                         {state: &state{signer: old, phase: PhaseSteady}, at: long},
		"a request publishes a new one":                   {state: requested, at: long, want: PhasePublishing, signer: old, bundle: []*issuer{old, made}},
		"an old one is followed by a new one":             {state: &state{signer: aged, phase: PhaseSteady}, at: long, want: PhasePublishing, signer: aged, bundle: []*issuer{aged, made}},
		"somebody else's stays as old as it may be":       {state: &state{signer: &foreign, phase: PhaseSteady}, at: long},
		"one that has expired is replaced at once":        {state: &state{signer: expired, phase: PhaseSteady}, at: long, want: PhaseSigning, signer: made, bundle: []*issuer{expired, made}},
		"a request is honoured though nobody is told yet": {state: requested, at: with(func(s *situation) { s.published = nil }), want: PhasePublishing, signer: old, bundle: []*issuer{old, made}},

		"publishing waits for the last bundle":           {state: rotating(PhasePublishing, old, fresh, now), at: with(func(s *situation) { s.published = [][]byte{both, onlyOld} }), waitsFor: "1 of 2 CA bundles"},
		"publishing waits while the bundles are unknown": {state: rotating(PhasePublishing, old, fresh, now), at: with(func(s *situation) { s.unknown = errors.New("no cache") }), waitsFor: "no cache"},
		"an invalid bundle does not hold it":             {state: rotating(PhasePublishing, old, fresh, now), at: with(func(s *situation) { s.published = [][]byte{both, []byte("x")} }), waitsFor: "1 of 2 CA bundles"},
		"published everywhere it propagates":             {state: rotating(PhasePublishing, old, fresh, now), at: with(func(s *situation) { s.seen = 0 }), want: PhasePropagating, signer: old, bundle: []*issuer{old, fresh}},
		"without any webhook it propagates as well":      {state: rotating(PhasePublishing, old, fresh, now), at: with(func(s *situation) { s.published = nil }), want: PhasePropagating, signer: old, bundle: []*issuer{old, fresh}},
		"a next one that has expired is replaced":        {state: rotating(PhasePublishing, old, expired, now), at: long, want: PhasePublishing, signer: old, bundle: []*issuer{old, made}},
		"it propagates for its time":                     {state: rotating(PhasePropagating, old, fresh, now), at: with(func(s *situation) { s.seen = propagation - 1 }), waitsFor: "all API servers"},
		"the time counts, not what the clock says":       {state: rotating(PhasePropagating, old, fresh, now.Add(-1000*time.Hour)), at: with(func(s *situation) { s.seen = propagation - 1 }), waitsFor: "all API servers"},
		"a beginning in the future does not stop it":     {state: rotating(PhasePropagating, old, fresh, now.Add(1000*time.Hour)), at: with(func(s *situation) { s.seen = propagation }), want: PhaseSigning, signer: fresh, bundle: []*issuer{old, fresh}},
		"a bundle that lost it is waited for anew":       {state: rotating(PhasePropagating, old, fresh, now), at: with(func(s *situation) { s.published = [][]byte{onlyOld} }), want: PhasePublishing, signer: old, bundle: []*issuer{old, fresh}},
		"it does not sign while the bundles are unknown": {state: rotating(PhasePropagating, old, fresh, now), at: with(func(s *situation) { s.unknown = errors.New("no cache") }), waitsFor: "no cache"},
		"then it signs": {state: rotating(PhasePropagating, old, fresh, now), at: long, want: PhaseSigning, signer: fresh, bundle: []*issuer{old, fresh}},
		"it signs at once if the old one has expired":     {state: rotating(PhasePublishing, expired, fresh, now), at: with(func(s *situation) { s.published = nil; s.unknown = errors.New("x") }), want: PhaseSigning, signer: fresh, bundle: []*issuer{expired, fresh}},
		"the old one is trusted for the time":             {state: rotating(PhaseSigning, old, fresh, now), at: with(func(s *situation) { s.seen = propagation - 1 }), waitsFor: "all replicas"},
		"the old one is trusted while this one serves it": {state: rotating(PhaseSigning, old, fresh, now), at: with(func(s *situation) { s.serving = false }), waitsFor: "this replica"},
		"the old one is not dropped for a bundle without": {state: rotating(PhaseSigning, old, fresh, now), at: with(func(s *situation) { s.published = [][]byte{onlyOld} }), waitsFor: "1 of 1 CA bundles"},
		"the old one is not dropped in the dark":          {state: rotating(PhaseSigning, old, fresh, now), at: with(func(s *situation) { s.unknown = errors.New("no cache") }), waitsFor: "no cache"},
		"then the old one is dropped":                     {state: rotating(PhaseSigning, old, fresh, now), at: with(func(s *situation) { s.published = [][]byte{both, onlyFresh} }), want: PhaseSteady, signer: fresh, bundle: []*issuer{fresh}},
	} {
		t.Run(name, func(t *testing.T) {
			step, waitsFor, err := test.state.next(test.at, func() (*issuer, error) { return made, nil })
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(waitsFor, test.waitsFor) || (test.waitsFor == "") != (waitsFor == "") {
				t.Errorf("waits for %q, want %q", waitsFor, test.waitsFor)
			}
			if step == nil {
				if test.want != "" {
					t.Errorf("nothing changes, want %s", test.want)
				}
				return
			}
			if step.phase != test.want {
				t.Fatalf("got phase %q, want %q", step.phase, test.want)
			}
			if !step.signer.certificate.Equal(test.signer.certificate) {
				t.Error("another one signs")
			}
			var want []*x509.Certificate
			for _, authority := range test.bundle {
				want = append(want, authority.certificate)
			}
			if !bytes.Equal(encodeBundle(step.signer.bundle), encodeBundle(want)) {
				t.Errorf("%d are trusted, want others", len(step.signer.bundle))
			}
			read, err := parseState(secretOf(t, step))
			if err != nil || !read.sameStage(step) || !read.requested.IsZero() {
				t.Errorf("what is written cannot be read back: %v", err)
			}
		})
	}
}

// TestARotationMayStopAnywhere stops after each decision, before or after it is
// written, and continues with a replica that only has the Secret.
func TestARotationMayStopAnywhere(t *testing.T) {
	const propagation = time.Minute
	for stopAt := range 5 {
		for _, written := range []bool{false, true} {
			old, now := newTestIssuer(t, tenYears), time.Now()
			secret := secretOf(t, &state{signer: old, phase: PhaseSteady, requested: now})
			published := encodeBundle(old.bundle)
			var entered time.Time
			var stage *state
			var visited []Phase
			for steps, stopped := 0, false; ; {
				s, err := parseState(secret)
				if err != nil {
					t.Fatal(err)
				}
				if s.phase == PhaseSteady && s.requested.IsZero() {
					if !Holds(published, s.signer.certificate) || s.signer.certificate.Equal(old.certificate) {
						t.Error("the new authority is not the one that is published")
					}
					break
				}
				if !s.sameStage(stage) {
					stage, entered = s, now
				}
				at := situation{now: now, seen: now.Sub(entered), published: [][]byte{published}, propagation: propagation, serving: true}
				step, _, err := s.next(at, func() (*issuer, error) { return newIssuer(now, tenYears) })
				if err != nil {
					t.Fatal(err)
				}
				now = now.Add(10 * time.Second)
				published = encodeBundle(s.signer.bundle)
				if step == nil {
					if now.Sub(at.now) > 24*time.Hour || len(visited) > 20 {
						t.Fatal("it does not go on")
					}
					continue
				}
				if step.phase == PhaseSigning && at.seen < propagation {
					t.Error("it signs before everybody has had time to see it")
				}
				if !stopped && steps == stopAt {
					stopped, stage = true, nil
					if !written {
						continue
					}
				}
				steps++
				visited = append(visited, step.phase)
				if secret, err = step.into(secret); err != nil {
					t.Fatal(err)
				}
			}
			if len(visited) != 4 {
				t.Errorf("stopped at %d (written %t): visited %v", stopAt, written, visited)
			}
		}
	}
}

func TestSecretsThatHoldNoStateAreRefused(t *testing.T) {
	old, fresh := newTestIssuer(t, tenYears), newTestIssuer(t, tenYears)
	for name, test := range map[string]struct {
		phase  Phase
		change func(map[string][]byte)
		want   string
	}{
		"an invalid phase":            {PhasePublishing, func(d map[string][]byte) { d[phaseKey] = []byte("later") }, "must be one of the phases"},
		"an invalid time":             {PhasePublishing, func(d map[string][]byte) { d[sinceKey] = []byte("yesterday") }, "RFC 3339"},
		"no time":                     {PhaseSigning, func(d map[string][]byte) { delete(d, sinceKey) }, "RFC 3339"},
		"no next authority":           {PhasePublishing, func(d map[string][]byte) { delete(d, nextKeyKey) }, "next.crt and next.key"},
		"no old authority":            {PhaseSigning, func(d map[string][]byte) { delete(d, oldCertificateKey) }, "old.crt and old.key"},
		"a next key of somebody else": {PhasePropagating, func(d map[string][]byte) { d[nextKeyKey] = d[signerKeyKey] }, "next.crt and next.key"},
		"the same authority twice": {PhasePropagating, func(d map[string][]byte) {
			d[nextCertificateKey], d[nextKeyKey] = d[signerCertificateKey], d[signerKeyKey]
		}, "the same authority"},
		"a bundle without the next one": {PhasePropagating, func(d map[string][]byte) { d[bundleKey] = d[signerCertificateKey] }, "must contain the next authority"},
		"a bundle without the signer":   {PhaseSigning, func(d map[string][]byte) { d[bundleKey] = d[oldCertificateKey] }, "must contain the next authority"},
	} {
		t.Run(name, func(t *testing.T) {
			secret := secretOf(t, rotating(test.phase, old, fresh, time.Now()))
			test.change(secret.Data)
			if _, err := ReadStatus(secret); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestWritingAStateLeavesOthersKeysAlone(t *testing.T) {
	old, fresh := newTestIssuer(t, tenYears), newTestIssuer(t, tenYears)
	secret := secretOf(t, rotating(PhaseSigning, old, fresh, time.Now()))
	secret.Data["mine"], secret.Annotations = []byte("x"), map[string]string{"mine": "y", rotationRequestAnnotation: "z"}
	out, err := (&state{signer: fresh, phase: PhaseSteady}).into(secret)
	if err != nil {
		t.Fatal(err)
	}
	if string(out.Data["mine"]) != "x" || out.Annotations["mine"] != "y" || len(out.Data) != 4 || len(out.Annotations) != 1 {
		t.Errorf("got %d keys and annotations %v", len(out.Data), out.Annotations)
	}
	if len(secret.Data) != 8 || len(secret.Annotations) != 2 {
		t.Error("the Secret that was read has changed")
	}
}

func FuzzParseState(f *testing.F) {
	old, fresh := newTestIssuer(f, tenYears), newTestIssuer(f, tenYears)
	for _, phase := range []Phase{PhasePublishing, PhasePropagating, PhaseSigning} {
		data := secretOf(f, rotating(phase, old, fresh, time.Unix(1e9, 0))).Data
		f.Add(data[signerCertificateKey], data[signerKeyKey], data[bundleKey], data[nextCertificateKey], data[nextKeyKey],
			data[oldCertificateKey], data[oldKeyKey], data[phaseKey], data[sinceKey], "2026-01-02T03:04:05Z")
	}
	f.Fuzz(func(t *testing.T, crt, key, bundle, nextCrt, nextKey, oldCrt, oldKey, phase, since []byte, request string) {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{rotationRequestAnnotation: request}},
			Data: map[string][]byte{
				signerCertificateKey: crt, signerKeyKey: key, bundleKey: bundle, nextCertificateKey: nextCrt, nextKeyKey: nextKey,
				oldCertificateKey: oldCrt, oldKeyKey: oldKey, phaseKey: phase, sinceKey: since,
			},
		}
		before := maps.Clone(secret.Data)
		s, err := parseState(secret)
		if err != nil {
			return
		}
		again, err := s.into(secret)
		if err != nil {
			t.Fatal(err)
		}
		read, err := parseState(again)
		if err != nil || !read.sameStage(s) {
			t.Errorf("a state that was read is another one when it is written and read again: %v", err)
		}
		if !maps.EqualFunc(before, secret.Data, bytes.Equal) {
			t.Error("reading has changed the Secret")
		}
	})
}
