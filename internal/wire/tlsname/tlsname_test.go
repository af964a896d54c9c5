// SPDX-License-Identifier: Apache-2.0

package tlsname

import (
	"crypto/tls"
	"slices"
	"testing"
)

func TestNamesAreThoseOfKubernetesComponents(t *testing.T) {
	if got := Versions(); !slices.Equal(got, []string{"VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"}) {
		t.Errorf("versions %q", got)
	}
	for name, want := range map[string]uint16{"": tls.VersionTLS12, "VersionTLS13": tls.VersionTLS13} {
		if got, ok := Version(name); !ok || got != want {
			t.Errorf("version %q: %x, %t", name, got, ok)
		}
	}
	if _, ok := Version("TLS13"); ok {
		t.Error("TLS13 is accepted")
	}
	for name, offered := range map[string]bool{
		"TLS_AES_128_GCM_SHA256": true, "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": true,
		"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": true, "TLS_RSA_WITH_RC4_128_SHA": false,
	} {
		if _, ok := Suite(name); !ok || slices.Contains(Suites(), name) != offered {
			t.Errorf("%s: accepted %t, offered %t", name, ok, !offered)
		}
	}
	if _, ok := Suite("TLS_NONE"); ok {
		t.Error("TLS_NONE is accepted")
	}
}
