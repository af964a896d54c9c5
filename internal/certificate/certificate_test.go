// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"crypto/x509"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const service = "webhooks.sallyport.svc"

var silent = slog.New(slog.DiscardHandler)

// newTestIssuer returns an issuer that is valid around now.
func newTestIssuer(t testing.TB, lifetime time.Duration) *issuer {
	t.Helper()
	made, err := newIssuer(time.Now(), lifetime)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// pairOf returns a serving certificate of the issuer as PEM.
func pairOf(t testing.TB, by *issuer, lifetime time.Duration) (certificate, key []byte) {
	t.Helper()
	issued, err := by.issue([]string{service}, nil, time.Now(), lifetime)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(issued.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return encodeBlock(certificateBlock, issued.Certificate[0]), encodeBlock("PRIVATE KEY", der)
}

// dataOf returns the data of the Secret of an issuer.
func dataOf(t testing.TB, i *issuer) map[string][]byte {
	t.Helper()
	data, err := i.data()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// expectAccepted checks that a client that trusts the published bundle would accept the
// served certificate now.
func expectAccepted(t testing.TB, source Source) {
	t.Helper()
	if err := source.Ready(); err != nil {
		t.Errorf("not ready: %v", err)
		return
	}
	expectAcceptedBy(t, source, source.CABundle(), time.Now())
}

func expectAcceptedBy(t testing.TB, source Source, bundle []byte, at time.Time) {
	t.Helper()
	served, err := source.GetCertificate(nil)
	if err != nil {
		t.Error(err)
		return
	}
	roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		t.Error("the bundle holds no certificate")
	}
	for _, der := range served.Certificate[1:] {
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			t.Error(err)
			return
		}
		intermediates.AddCert(certificate)
	}
	options := x509.VerifyOptions{DNSName: service, Roots: roots, Intermediates: intermediates, CurrentTime: at}
	if _, err := served.Leaf.Verify(options); err != nil {
		t.Errorf("a client would refuse the certificate: %v", err)
	}
}

// serial identifies certificates.
func serial(t testing.TB, source Source) string {
	t.Helper()
	served, err := source.GetCertificate(nil)
	if err != nil {
		t.Error(err)
		return ""
	}
	return served.Leaf.SerialNumber.String()
}
