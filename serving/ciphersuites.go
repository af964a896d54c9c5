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

// tls is what the names of versions and cipher suites mean.
func (o *Options) tls() (*tls.Config, error) {
	version, err := cliflag.TLSVersion(o.MinTLSVersion)
	if err != nil {
		err = fmt.Errorf("least TLS version %q: choose one of %s", o.MinTLSVersion, strings.Join(cliflag.TLSPossibleVersions(), ", "))
	}
	suites, errSuites := cliflag.TLSCipherSuites(o.CipherSuites)
	if errSuites != nil {
		errSuites = fmt.Errorf("cipher suites: %w; choose among %s", errSuites, strings.Join(cliflag.PreferredTLSCipherNames(), ", "))
	}
	if len(o.CipherSuites) == 0 {
		suites = authenticatedSuites()
	}
	if err = errors.Join(err, errSuites); err == nil && o.HTTP2 && version < tls.VersionTLS13 && !slices.ContainsFunc(suites, ofHTTP2) {
		// net/http does not start otherwise (RFC 9113, section 9.2.2).
		err = errors.New("cipher suites: HTTP/2 needs TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 or TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: add one, or leave HTTP/2 out")
	}
	return &tls.Config{MinVersion: version, CipherSuites: suites}, err
}

func ofHTTP2(suite uint16) bool {
	return suite == tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 || suite == tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
}

// authenticatedSuites are the cipher suites of TLS 1.2 that encrypt and authenticate in
// one (AEAD). What crypto/tls calls secure has suites with CBC too, which scanners and
// security guides object to. TLS 1.3 has no others, and is not configured.
func authenticatedSuites() []uint16 {
	var suites []uint16
	for _, suite := range tls.CipherSuites() {
		if strings.HasPrefix(suite.Name, "TLS_ECDHE_") && !strings.Contains(suite.Name, "_CBC_") {
			suites = append(suites, suite.ID)
		}
	}
	return suites
}
