// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"
)

// The keys of the authority's Secret. The first two are those of a Secret of type
// kubernetes.io/tls, for the signer; the third is the bundle for clients to trust, which
// has more than the signer during a rotation.
const (
	signerCertificateKey = "tls.crt"
	signerKeyKey         = "tls.key"
	bundleKey            = "ca-bundle.crt"
)

// authorityName is the common name of generated authorities.
const authorityName = "Sallyport webhook authority"

// backdated is how far before now certificates become valid, for clocks behind this one.
const backdated = 24 * time.Hour

// issuer is an authority's certificate and key, with the bundle that clients trust.
type issuer struct {
	certificate *x509.Certificate
	// chain is the certificate and its parents, DER.
	chain  [][]byte
	key    crypto.Signer
	bundle []*x509.Certificate
}

// newIssuer creates an authority with a P-256 key: API servers keep only 25 idle
// connections, and signing further handshakes takes 35 µs with P-256 and 1.1 ms with
// RSA-2048.
func newIssuer(now time.Time, lifetime time.Duration) (*issuer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the authority's key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          serialNumber(),
		Subject:               pkix.Name{CommonName: authorityName},
		NotBefore:             now.Add(-backdated),
		NotAfter:              now.Add(lifetime),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign the authority's certificate: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read the authority's certificate back: %w", err)
	}
	return &issuer{certificate: certificate, chain: [][]byte{der}, key: key, bundle: []*x509.Certificate{certificate}}, nil
}

// parseIssuer reads an authority from the data of a Secret. Without a bundle, as created by
// "kubectl create secret tls", its certificate is the bundle.
func parseIssuer(data map[string][]byte) (*issuer, error) {
	i, err := parsePair(data, signerCertificateKey, signerKeyKey)
	if err != nil {
		return nil, err
	}
	if text, ok := data[bundleKey]; ok {
		if i.bundle, err = parseBundle(text); err != nil {
			return nil, fmt.Errorf("%s: %w", bundleKey, err)
		}
	}
	return i, nil
}

// parsePair reads an authority from two keys of a Secret. Its certificate is the bundle.
func parsePair(data map[string][]byte, certificateKey, keyKey string) (*issuer, error) {
	pair, err := tls.X509KeyPair(data[certificateKey], data[keyKey])
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", certificateKey, keyKey, err)
	}
	if !pair.Leaf.IsCA || (pair.Leaf.KeyUsage != 0 && pair.Leaf.KeyUsage&x509.KeyUsageCertSign == 0) {
		return nil, fmt.Errorf("%s: the certificate is not a CA certificate", certificateKey)
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s: the key cannot sign", keyKey)
	}
	return &issuer{certificate: pair.Leaf, chain: pair.Certificate, key: key, bundle: []*x509.Certificate{pair.Leaf}}, nil
}

// pair is the inverse of parsePair.
func (i *issuer) pair() (certificate, key []byte, err error) {
	der, err := x509.MarshalPKCS8PrivateKey(i.key)
	if err != nil {
		return nil, nil, fmt.Errorf("encode the authority's key: %w", err)
	}
	for _, block := range i.chain {
		certificate = append(certificate, encodeBlock(certificateBlock, block)...)
	}
	return certificate, encodeBlock("PRIVATE KEY", der), nil
}

// data is the inverse of parseIssuer.
func (i *issuer) data() (map[string][]byte, error) {
	certificate, key, err := i.pair()
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		signerCertificateKey: certificate,
		signerKeyKey:         key,
		bundleKey:            encodeBundle(i.bundle),
	}, nil
}

// own reports whether the authority seems to be created by newIssuer: any other is only
// replaced on request.
func (i *issuer) own() bool {
	return i.certificate.Subject.CommonName == authorityName && bytes.Equal(i.certificate.RawSubject, i.certificate.RawIssuer)
}

// equal reports whether two authorities have the same signer and bundle.
func (i *issuer) equal(other *issuer) bool {
	return other != nil && i.certificate.Equal(other.certificate) &&
		slices.EqualFunc(i.bundle, other.bundle, (*x509.Certificate).Equal)
}

// issue signs a serving certificate with a new P-256 key. It expires with the authority at
// the latest. It is an error if clients that trust the bundle would reject it.
func (i *issuer) issue(dnsNames []string, addresses []net.IP, now time.Time, lifetime time.Duration) (*tls.Certificate, error) {
	if err := validAt(i.certificate, now); err != nil {
		return nil, fmt.Errorf("the authority cannot sign: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the serving key: %w", err)
	}
	notAfter := now.Add(lifetime)
	if notAfter.After(i.certificate.NotAfter) {
		notAfter = i.certificate.NotAfter
	}
	template := &x509.Certificate{
		SerialNumber: serialNumber(),
		Subject:      pkix.Name{CommonName: "Sallyport webhooks"},
		NotBefore:    now.Add(-backdated),
		NotAfter:     notAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     dnsNames,
		IPAddresses:  addresses,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, i.certificate, key.Public(), i.key)
	if err != nil {
		return nil, fmt.Errorf("sign the serving certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read the serving certificate back: %w", err)
	}
	certificate := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
	if !slices.ContainsFunc(i.bundle, i.certificate.Equal) {
		// The bundle has the root; clients need the intermediate certificates.
		certificate.Certificate = append(certificate.Certificate, i.chain...)
	}
	if err := trusted(certificate, i.bundle, now); err != nil {
		return nil, err
	}
	return certificate, nil
}

// serialNumber is random, positive and of 127 bits (RFC 5280, section 4.1.2.2,
// allows 159).
func serialNumber() *big.Int {
	var number [16]byte
	_, _ = rand.Read(number[:]) // never fails, see crypto/rand
	number[0] = number[0]&0x7f | 0x40
	return new(big.Int).SetBytes(number[:])
}
