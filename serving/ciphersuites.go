// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"

	cliflag "k8s.io/component-base/cli/flag"
)

// tls resolves the names of versions and cipher suites.
func (o *Options) tls() (*tls.Config, error) {
	version, err := cliflag.TLSVersion(o.MinTLSVersion)
	if err != nil {
		err = fmt.Errorf("minimum TLS version %q: choose one of %s", o.MinTLSVersion, strings.Join(cliflag.TLSPossibleVersions(), ", "))
	}
	suites, errSuites := cliflag.TLSCipherSuites(o.CipherSuites)
	if errSuites != nil {
		errSuites = fmt.Errorf("cipher suites: %w; choose among %s", errSuites, strings.Join(cliflag.PreferredTLSCipherNames(), ", "))
	}
	if len(o.CipherSuites) == 0 {
		suites = authenticatedSuites()
	}
	if err = errors.Join(err, errSuites); err == nil && o.HTTP2 && version < tls.VersionTLS13 && !slices.ContainsFunc(suites, ofHTTP2) {
		// Otherwise net/http does not start (RFC 9113, section 9.2.2).
		err = errors.New("cipher suites: HTTP/2 requires TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 or TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: add one, or disable HTTP/2")
	}
	return &tls.Config{MinVersion: version, CipherSuites: suites}, err
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
