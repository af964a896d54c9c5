// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"crypto/tls"
	"strings"
)

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
