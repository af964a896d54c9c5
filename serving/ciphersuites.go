// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"crypto/tls"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	cliflag "k8s.io/component-base/cli/flag"
)

// tls resolves the names of versions and cipher suites. The problems are below a path.
func (s *Settings) tls(path *field.Path) (*tls.Config, field.ErrorList) {
	var errs field.ErrorList
	version, err := cliflag.TLSVersion(s.TLSMinVersion)
	if err != nil {
		errs = append(errs, field.NotSupported(path.Child("tlsMinVersion"), s.TLSMinVersion, cliflag.TLSPossibleVersions()))
	}
	at := path.Child("tlsCipherSuites")
	suites, err := cliflag.TLSCipherSuites(s.TLSCipherSuites)
	if err != nil {
		errs = append(errs, field.Invalid(at, s.TLSCipherSuites, err.Error()+"; choose among "+strings.Join(cliflag.PreferredTLSCipherNames(), ", ")))
	}
	if len(s.TLSCipherSuites) == 0 {
		suites = authenticatedSuites()
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

// authenticatedSuites are the AEAD cipher suites of TLS 1.2. The suites that crypto/tls
// considers secure include CBC suites, which scanners and security guides object to. TLS
// 1.3 has only AEAD suites, and is not configurable.
func authenticatedSuites() []uint16 {
	var suites []uint16
	for _, suite := range tls.CipherSuites() {
		if strings.HasPrefix(suite.Name, "TLS_ECDHE_") && !strings.Contains(suite.Name, "_CBC_") {
			suites = append(suites, suite.ID)
		}
	}
	return suites
}
