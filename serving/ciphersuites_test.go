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

func TestVersionAndCipherSuitesOfTheOptionsAreAgreedOn(t *testing.T) {
	route := []Route{{Path: "/", Handler: echo}}
	for name, tc := range map[string]struct {
		change  func(*Options)
		version uint16 // of the client, at most
		suites  []uint16
		want    bool
	}{
		"TLS 1.2 by default":                 {func(*Options) {}, tls.VersionTLS12, nil, true},
		"no TLS 1.1 by default":              {func(*Options) {}, tls.VersionTLS11, nil, false},
		"no TLS 1.2 below the least version": {func(o *Options) { o.TLSMinVersion = "VersionTLS13" }, tls.VersionTLS12, nil, false},
		"the least version":                  {func(o *Options) { o.TLSMinVersion = "VersionTLS13" }, tls.VersionTLS13, nil, true},
		"a suite that was chosen": {func(o *Options) { o.TLSCipherSuites = []string{"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"} },
			tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384}, true},
		"a suite that was not chosen": {func(o *Options) { o.TLSCipherSuites = []string{"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"} },
			tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, func(o *Options) {
				o.Routes = route
				tc.change(o)
			})
			config := h.tls.Clone()
			config.MinVersion, config.MaxVersion, config.CipherSuites = tls.VersionTLS10, tc.version, tc.suites
			conn, err := tls.Dial("tcp", h.Addr().String(), config)
			if err == nil {
				_ = conn.Close()
			}
			if (err == nil) != tc.want {
				t.Errorf("the handshake ends with %v", err)
			}
		})
	}
}
