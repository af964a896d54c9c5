// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"maps"
	"net"
	"strings"
	"testing"
	"time"
)

func TestIssuedCertificates(t *testing.T) {
	by := newTestIssuer(t, 24*time.Hour)
	issued, err := by.issue([]string{service}, []net.IP{net.IPv4(127, 0, 0, 1)}, time.Now(), 12*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	key, ok := issued.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		t.Errorf("got a key of type %T, want P-256", issued.PrivateKey)
	}
	if len(issued.Certificate) != 1 {
		t.Errorf("a chain of %d is sent, clients need 1", len(issued.Certificate))
	}
	if issued.Leaf.VerifyHostname("127.0.0.1") != nil || issued.Leaf.VerifyHostname(service) != nil {
		t.Error("want the certificate good for the names it was asked for")
	}
	for _, ahead := range []time.Duration{-23 * time.Hour, 0, 11 * time.Hour} {
		if err := trusted(issued, by.bundle, time.Now().Add(ahead)); err != nil {
			t.Errorf("a clock that is %s ahead: %v", ahead, err)
		}
	}
	again, err := by.issue([]string{service}, nil, time.Now(), 12*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if again.Leaf.SerialNumber.Cmp(issued.Leaf.SerialNumber) == 0 || again.Leaf.SerialNumber.Sign() <= 0 {
		t.Error("want positive and different serial numbers")
	}
}

func TestCertificateEndsWithItsAuthority(t *testing.T) {
	by := newTestIssuer(t, time.Hour)
	issued, err := by.issue([]string{service}, nil, time.Now(), 48*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if !issued.Leaf.NotAfter.Equal(by.certificate.NotAfter) {
		t.Errorf("ends at %s, want %s", issued.Leaf.NotAfter, by.certificate.NotAfter)
	}
	if _, err := by.issue([]string{service}, nil, time.Now().Add(2*time.Hour), time.Hour); err == nil {
		t.Error("an authority that has expired signs")
	}
}

func TestAuthoritiesOfOthers(t *testing.T) {
	// An authority with an RSA key under a root, as companies have it.
	root := newTestRoot(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serialNumber(), Subject: pkix.Name{CommonName: "Intermediate"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, root.certificate, key.Public(), root.key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs1 := encodeBlock("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key))
	issue := func(t *testing.T, data map[string][]byte) (sent int) {
		t.Helper()
		parsed, err := parseIssuer(data)
		if err != nil {
			t.Fatal(err)
		}
		issued, err := parsed.issue([]string{service}, nil, time.Now(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return len(issued.Certificate)
	}
	t.Run("one below a root that is trusted sends its own certificate along", func(t *testing.T) {
		data := map[string][]byte{
			signerCertificateKey: encodeBlock(certificateBlock, der),
			signerKeyKey:         pkcs1,
			bundleKey:            encodeBundle([]*x509.Certificate{root.certificate}),
		}
		if sent := issue(t, data); sent != 2 {
			t.Errorf("sent a chain of %d, want 2", sent)
		}
	})
	t.Run("one without a bundle is its own", func(t *testing.T) {
		data := dataOf(t, root)
		delete(data, bundleKey)
		if sent := issue(t, data); sent != 1 {
			t.Errorf("sent a chain of %d, want 1", sent)
		}
	})
}

// newTestRoot is an issuer that may sign for other issuers.
func newTestRoot(t testing.TB) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serialNumber(), Subject: pkix.Name{CommonName: "Root"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{certificate: certificate, chain: [][]byte{der}, key: key, bundle: []*x509.Certificate{certificate}}
}

func TestParseIssuer(t *testing.T) {
	good := newTestIssuer(t, time.Hour)
	other := newTestIssuer(t, time.Hour)
	leaf, leafKey := pairOf(t, good, time.Hour)

	for name, test := range map[string]struct {
		change func(data map[string][]byte)
		want   string
	}{
		"what was written is read":            {func(map[string][]byte) {}, ""},
		"an empty Secret":                     {func(data map[string][]byte) { clear(data) }, "tls.crt and tls.key"},
		"a certificate cut off in the middle": {func(data map[string][]byte) { data[signerCertificateKey] = data[signerCertificateKey][:100] }, "tls.crt and tls.key"},
		"a key of another authority":          {func(data map[string][]byte) { data[signerKeyKey] = dataOf(t, other)[signerKeyKey] }, "tls.crt and tls.key"},
		"a certificate that may not sign":     {func(data map[string][]byte) { data[signerCertificateKey], data[signerKeyKey] = leaf, leafKey }, "not a CA certificate"},
		"an empty bundle":                     {func(data map[string][]byte) { data[bundleKey] = nil }, "contains no certificate"},
		"a bundle with a private key":         {func(data map[string][]byte) { data[bundleKey] = append(data[bundleKey], data[signerKeyKey]...) }, "not a CERTIFICATE"},
		"a bundle with a broken certificate":  {func(data map[string][]byte) { data[bundleKey] = encodeBlock(certificateBlock, []byte("x")) }, "parse certificate 1"},
	} {
		t.Run(name, func(t *testing.T) {
			data := maps.Clone(dataOf(t, good))
			test.change(data)
			got, err := parseIssuer(data)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("got error %v", err)
			case test.want == "" && !got.equal(good):
				t.Error("what is read is not what was written")
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
}

func TestABundleWithoutItsSignerIsOfNoUse(t *testing.T) {
	data := dataOf(t, newTestIssuer(t, time.Hour))
	data[bundleKey] = dataOf(t, newTestIssuer(t, time.Hour))[bundleKey]
	parsed, err := parseIssuer(data)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parsed.issue([]string{service}, nil, time.Now(), time.Hour); err == nil || !strings.Contains(err.Error(), "clients would reject") {
		t.Errorf("got error %v", err)
	}
}

func FuzzParseIssuer(f *testing.F) {
	data := dataOf(f, newTestIssuer(f, 1000*24*time.Hour))
	f.Add(data[signerCertificateKey], data[signerKeyKey], data[bundleKey])
	f.Add(data[signerCertificateKey], data[signerKeyKey], []byte{})
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"), []byte("-----BEGIN PRIVATE KEY-----\n"), []byte("x"))
	f.Fuzz(func(t *testing.T, certificate, key, bundle []byte) {
		parsed, err := parseIssuer(map[string][]byte{signerCertificateKey: certificate, signerKeyKey: key, bundleKey: bundle})
		if err != nil {
			return
		}
		if issued, err := parsed.issue([]string{service}, nil, time.Now(), time.Hour); err == nil {
			if err := trusted(issued, parsed.bundle, time.Now()); err != nil {
				t.Error(err)
			}
		}
	})
}

func FuzzParseBundle(f *testing.F) {
	text := encodeBundle(newTestIssuer(f, time.Hour).bundle)
	f.Add(text)
	f.Add(append(append([]byte("a comment\n"), text...), text...))
	f.Add([]byte("-----BEGIN CERTIFICATE-----"))
	f.Fuzz(func(t *testing.T, text []byte) {
		certificates, err := parseBundle(text)
		if err != nil {
			return
		}
		clean := encodeBundle(certificates)
		again, err := parseBundle(clean)
		if err != nil || len(again) != len(certificates) || !bytes.Equal(encodeBundle(again), clean) {
			t.Errorf("what is written is not read again: %v", err)
		}
	})
}
