// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"crypto/tls"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/internal/wire/tlsname"
)

// tls resolves the names of versions and cipher suites. The problems are below a path.
func (s *Settings) tls(path *field.Path) (*tls.Config, field.ErrorList) {
	var errs field.ErrorList
	version, ok := tlsname.Version(s.TLSMinVersion)
	if !ok {
		errs = append(errs, field.NotSupported(path.Child("tlsMinVersion"), s.TLSMinVersion, tlsname.Versions()))
	}
	at := path.Child("tlsCipherSuites")
	var suites []uint16
	for i, name := range s.TLSCipherSuites {
		if id, ok := tlsname.Suite(name); ok {
			suites = append(suites, id)
		} else {
			errs = append(errs, field.NotSupported(at.Index(i), name, tlsname.Suites()))
		}
	}
	if len(s.TLSCipherSuites) == 0 {
		suites = tlsname.Authenticated()
	}
	if len(errs) == 0 && s.HTTP2 && version < tls.VersionTLS13 && !slices.ContainsFunc(suites, ofHTTP2) {
		// Otherwise net/http does not start (RFC 9113, section 9.2.2).
		errs = append(errs, field.Invalid(at, s.TLSCipherSuites,
			"HTTP/2 requires TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 or TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: add one, or disable HTTP/2"))
	}
	return &tls.Config{MinVersion: version, CipherSuites: suites}, errs
}

func ofHTTP2(suite uint16) bool {
	return suite == tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 || suite == tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
}
