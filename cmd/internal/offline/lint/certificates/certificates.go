// SPDX-License-Identifier: Apache-2.0

// Package certificates checks CA bundles and serving certificates as the API server does.
package certificates

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// Problem is a problem of a bundle or certificate.
type Problem struct {
	// Soon is set for what is valid, and not for long.
	Soon bool
	Text string
}

// soon is the remaining lifetime below which a CA causes a warning.
const soon = 30 * 24 * time.Hour

// OfBundle returns the problems of a CA bundle. Several CAs are normal during a rotation, so an
// expired CA only counts if no other is left.
func OfBundle(bundle []byte, now time.Time) []Problem {
	certificates, err := parse(bundle)
	if err != nil {
		return []Problem{{false, "does not parse: " + err.Error()}}
	}
	last := certificates[0]
	for _, c := range certificates {
		if c.NotAfter.After(last.NotAfter) {
			last = c
		}
	}
	switch left := last.NotAfter.Sub(now); {
	case left <= 0:
		return []Problem{{false, "expired on " + last.NotAfter.UTC().Format(time.DateOnly)}}
	case left < soon:
		return []Problem{{true, fmt.Sprintf("expires in %d days", int(left.Hours()/24))}}
	}
	return nil
}

func parse(bundle []byte) ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	for rest := bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("it holds a PEM block %q", block.Type)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errors.New("a certificate in it is malformed")
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, errors.New("it holds no PEM certificate")
	}
	return out, nil
}

// OfLeaf returns the problems of a serving certificate; it checks, like the API server, name, validity and
// chain to the bundle.
func OfLeaf(chain []*x509.Certificate, bundle []byte, name string, now time.Time) []Problem {
	leaf := chain[0]
	var out []Problem
	if err := leaf.VerifyHostname(name); err != nil {
		out = append(out, Problem{false, "serving certificate has no SAN " + name})
	}
	if now.After(leaf.NotAfter) {
		out = append(out, Problem{false, "serving certificate expired on " + leaf.NotAfter.UTC().Format(time.DateOnly)})
	}
	if now.Before(leaf.NotBefore) {
		out = append(out, Problem{false, "serving certificate is not valid before " + leaf.NotBefore.UTC().Format(time.RFC3339)})
	}
	certificates, err := parse(bundle)
	if err != nil || len(out) > 0 {
		return out // another rule reports it, or it explains the rest
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	for _, c := range certificates {
		roots.AddCert(c)
	}
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err != nil {
		out = append(out, Problem{false, "does not sign the serving certificate"})
	}
	return out
}

// Serving returns the chain in a Secret of type kubernetes.io/tls, or nil.
func Serving(data map[string][]byte) []*x509.Certificate {
	chain, err := parse(data["tls.crt"])
	if err != nil {
		return nil
	}
	return chain
}

// Blank reports whether there is no bundle; white space is none.
func Blank(bundle []byte) bool { return len(bytes.TrimSpace(bundle)) == 0 }
