// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"
)

// injectors are annotations of controllers that write the CA bundle.
var injectors = []string{
	"cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca",
	"service.beta.openshift.io/inject-cabundle",
}

// injected reports whether a controller writes the CA bundle of an object: a Sallyport
// server in its own objects, or an injector requested by annotation.
func injected(o *Object) bool {
	return o.Labels["app.kubernetes.io/managed-by"] == "sallyport" ||
		slices.ContainsFunc(injectors, func(key string) bool { return o.Annotations[key] != "" })
}

// problem is a problem of a bundle with its severity.
type problem struct {
	severity Severity
	text     string
}

// soon is the remaining lifetime below which a CA causes a warning.
const soon = 30 * 24 * time.Hour

// bundleProblems checks a CA bundle. Several CAs are normal during a rotation, so an
// expired CA only counts if no other is left.
func bundleProblems(bundle []byte, now time.Time) []problem {
	certificates, err := parseBundle(bundle)
	if err != nil {
		return []problem{{Error, "does not parse: " + err.Error()}}
	}
	last := certificates[0]
	for _, c := range certificates {
		if c.NotAfter.After(last.NotAfter) {
			last = c
		}
	}
	switch left := last.NotAfter.Sub(now); {
	case left <= 0:
		return []problem{{Error, "expired on " + last.NotAfter.UTC().Format(time.DateOnly)}}
	case left < soon:
		return []problem{{Warning, fmt.Sprintf("expires in %d days", int(left.Hours()/24))}}
	}
	return nil
}

func parseBundle(bundle []byte) ([]*x509.Certificate, error) {
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

// leafProblems checks a serving certificate like the API server: name, validity and
// chain to the bundle.
func leafProblems(chain []*x509.Certificate, bundle []byte, name string, now time.Time) []problem {
	leaf := chain[0]
	var out []problem
	if err := leaf.VerifyHostname(name); err != nil {
		out = append(out, problem{Error, "serving certificate has no SAN " + name})
	}
	if now.After(leaf.NotAfter) {
		out = append(out, problem{Error, "serving certificate expired on " + leaf.NotAfter.UTC().Format(time.DateOnly)})
	}
	if now.Before(leaf.NotBefore) {
		out = append(out, problem{Error, "serving certificate is not valid before " + leaf.NotBefore.UTC().Format(time.RFC3339)})
	}
	certificates, err := parseBundle(bundle)
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
		out = append(out, problem{Error, "does not sign the serving certificate"})
	}
	return out
}

// servingCertificate returns the chain in a Secret of type kubernetes.io/tls, or nil.
func servingCertificate(data map[string][]byte) []*x509.Certificate {
	chain, err := parseBundle(data["tls.crt"])
	if err != nil {
		return nil
	}
	return chain
}

func blank(bundle []byte) bool { return len(bytes.TrimSpace(bundle)) == 0 }
