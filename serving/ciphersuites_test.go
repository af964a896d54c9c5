// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"crypto/tls"
	"testing"
)

func TestTLS12HasNoSuitesWithCBC(t *testing.T) {
	h := start(t, func(o *Options) { o.Routes = []Route{{Path: "/", Handler: echo}} })
	shakes := func(suite uint16) bool {
		config := h.tls.Clone()
		config.MaxVersion, config.CipherSuites = tls.VersionTLS12, []uint16{suite}
		conn, err := tls.Dial("tcp", h.Addr().String(), config)
		if err != nil {
			return false
		}
		_ = conn.Close()
		return true
	}
	for suite, want := range map[uint16]bool{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256:       true,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384:       true,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: true,
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA:          false,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA:          false,
	} {
		if got := shakes(suite); got != want {
			t.Errorf("%s: agreed on %t, want %t", tls.CipherSuiteName(suite), got, want)
		}
	}
}
