// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// signer signs certificates of callers.
type signer struct {
	t    testing.TB
	key  *ecdsa.PrivateKey
	leaf *x509.Certificate
}

func newSigner(t testing.TB) *signer {
	t.Helper()
	s := &signer{t: t}
	pair := s.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "a CA"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	s.key, s.leaf = pair.PrivateKey.(*ecdsa.PrivateKey), pair.Leaf
	return s
}

// sign makes a certificate; the first one of a signer is its own.
func (s *signer) sign(template *x509.Certificate) tls.Certificate {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	template.SerialNumber, template.NotBefore = big.NewInt(1), time.Now().Add(-time.Hour)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	parent, by := s.leaf, s.key
	if parent == nil {
		parent, by = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		s.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		s.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func (s *signer) client(name string) tls.Certificate {
	return s.sign(&x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

func (s *signer) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.leaf.Raw})
}

// rewrite replaces a file atomically, as Kubernetes does.
func rewrite(t testing.TB, file string, contents []byte) {
	t.Helper()
	if err := os.WriteFile(file+".new", contents, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

func TestOnlyCallersWithACertificateOfTheCAMayCall(t *testing.T) {
	ours, theirs := newSigner(t), newSigner(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	rewrite(t, file, ours.pem())
	ca, err := NewClientCA(ClientCAOptions{File: file, CommonNames: []string{"kube-apiserver", "other"}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	h := start(t, func(o *Options) {
		o.Routes = []Route{{Path: "/echo", Handler: echo}}
		o.Authenticate, o.ClientCertificates = ca.Authenticate, true
	})
	for name, test := range map[string]struct {
		with   []tls.Certificate
		status int
	}{
		"a certificate of the CA":                {[]tls.Certificate{ours.client("kube-apiserver")}, 200},
		"no certificate":                         {nil, 401},
		"a certificate of another CA":            {[]tls.Certificate{theirs.client("kube-apiserver")}, 401},
		"another common name":                    {[]tls.Certificate{ours.client("somebody")}, 403},
		"a certificate for servers":              {[]tls.Certificate{ours.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "kube-apiserver"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})}, 401},
		"a certificate that has expired":         {[]tls.Certificate{ours.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "kube-apiserver"}, NotAfter: time.Now().Add(-time.Minute), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})}, 401},
		"a certificate of the CA, another's key": {[]tls.Certificate{{Certificate: ours.client("kube-apiserver").Certificate, PrivateKey: theirs.key}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			config := h.tls.Clone()
			config.Certificates = test.with
			transport := &http.Transport{TLSClientConfig: config}
			defer transport.CloseIdleConnections()
			for range 2 { // the second time it is remembered
				response, err := (&http.Client{Transport: transport}).Post(h.url("/echo"), "", strings.NewReader("hello"))
				if test.status == 0 {
					if err == nil {
						_ = response.Body.Close()
						t.Error("answered who has not the key")
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				readReply(t, response).expect(t, test.status, "")
			}
		})
	}
}

// callOf returns a request as TLS delivers it.
func callOf(certificate tls.Certificate) *http.Request {
	return &http.Request{TLS: &tls.ConnectionState{PeerCertificates: []*x509.Certificate{certificate.Leaf}}}
}

func TestTheClientCAIsFollowedAndABadOneChangesNothing(t *testing.T) {
	first, second := newSigner(t), newSigner(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	rewrite(t, file, first.pem())
	ca, err := NewClientCA(ClientCAOptions{File: file, PollInterval: time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- ca.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	old, renewed := callOf(first.client("a")), callOf(second.client("a"))
	if ca.Authenticate(old) != nil || ca.Authenticate(renewed) == nil {
		t.Fatal("the first CA is not the one that is trusted")
	}
	await := func(condition func() bool) {
		t.Helper()
		for !condition() {
			select {
			case <-t.Context().Done():
				t.Fatal("it never happens")
			case <-time.After(time.Millisecond):
			}
		}
	}
	for _, bad := range [][]byte{nil, []byte("x"), first.pem()[:100], append(second.pem(), "-----BEGIN CERT"...)} {
		failures := testutil.ToFloat64(ca.failures)
		rewrite(t, file, bad)
		await(func() bool { return testutil.ToFloat64(ca.failures) > failures })
		if ca.Authenticate(old) != nil || ca.Authenticate(renewed) == nil {
			t.Errorf("%.20q has taken the place of the first CA", bad)
		}
	}
	rewrite(t, file, append(first.pem(), second.pem()...)) // as a rotation begins
	await(func() bool { return ca.Authenticate(renewed) == nil })
	if err := ca.Authenticate(old); err != nil {
		t.Errorf("who was trusted is no longer: %v", err)
	}
	rewrite(t, file, second.pem())
	await(func() bool { return ca.Authenticate(old) != nil })
}

func TestTheCheckOfACallerHoldsForAWhileOnly(t *testing.T) {
	ours := newSigner(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	rewrite(t, file, ours.pem())
	now := time.Now()
	ca, err := NewClientCA(ClientCAOptions{File: file, Now: func() time.Time { return now }, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 * knownCallers {
		if err := ca.Authenticate(callOf(ours.client("a"))); err != nil {
			t.Fatal(err)
		}
	}
	if known := len(ca.current.Load().known); known == 0 || known > knownCallers {
		t.Errorf("%d callers are remembered", known)
	}
	call := callOf(ours.client("a"))
	if err := ca.Authenticate(call); err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Hour)
	if err := ca.Authenticate(call); err == nil {
		t.Error("a certificate that has expired since is trusted")
	}
}

func TestProblemsInTheClientCAAreNamed(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	rewrite(t, empty, nil)
	for name, test := range map[string]struct {
		options ClientCAOptions
		want    []string
	}{
		"everything":                 {ClientCAOptions{CommonNames: []string{""}, PollInterval: -1}, []string{"a file with the CA", "common name is empty", "poll interval"}},
		"a file that is missing":     {ClientCAOptions{File: empty + "x"}, []string{"read the CA"}},
		"a file without certificate": {ClientCAOptions{File: empty}, []string{"contains no certificate"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewClientCA(test.options)
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want it to say %q", err, want)
				}
			}
		})
	}
}

func FuzzParseClientCA(f *testing.F) {
	f.Add(newSigner(f).pem())
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, contents []byte) {
		if pool, err := parseClientCA(contents); (pool == nil) == (err == nil) {
			t.Errorf("pool %v, error %v", pool, err)
		}
	})
}
