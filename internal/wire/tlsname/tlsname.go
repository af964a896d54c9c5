// SPDX-License-Identifier: Apache-2.0

// Package tlsname has the names of TLS versions and cipher suites: those of the flags of Kubernetes' components
// (--tls-min-version and --tls-cipher-suites of kube-apiserver), whose package would add its dependencies to each application.
package tlsname

import (
	"cmp"
	"crypto/tls"
	"maps"
	"slices"
	"strings"
)

var versions = map[string]uint16{
	"VersionTLS10": tls.VersionTLS10, "VersionTLS11": tls.VersionTLS11, "VersionTLS12": tls.VersionTLS12, "VersionTLS13": tls.VersionTLS13,
}

// secure returns the secure cipher suites by name. Two have a second, older name, as for
// Kubernetes' components.
func secure() map[string]uint16 {
	suites := map[string]uint16{
		"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305":   tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	}
	for _, suite := range tls.CipherSuites() {
		suites[suite.Name] = suite.ID
	}
	return suites
}

// Suite returns a cipher suite by name. Insecure suites can be used, but are not offered.
func Suite(name string) (uint16, bool) {
	if id, ok := secure()[name]; ok {
		return id, true
	}
	for _, suite := range tls.InsecureCipherSuites() {
		if suite.Name == name {
			return suite.ID, true
		}
	}
	return 0, false
}

// Versions returns the names of versions.
func Versions() []string { return slices.Sorted(maps.Keys(versions)) }

// Suites returns the names of secure cipher suites.
func Suites() []string { return slices.Sorted(maps.Keys(secure())) }

// Version returns a version of TLS by name; empty is TLS 1.2.
func Version(name string) (uint16, bool) {
	version, ok := versions[cmp.Or(name, "VersionTLS12")]
	return version, ok
}

// Authenticated are the AEAD cipher suites of TLS 1.2. The suites that crypto/tls
// considers secure include CBC suites, which scanners and security guides object to. TLS
// 1.3 has only AEAD suites, and is not configurable.
func Authenticated() []uint16 {
	var suites []uint16
	for _, suite := range tls.CipherSuites() {
		if strings.HasPrefix(suite.Name, "TLS_ECDHE_") && !strings.Contains(suite.Name, "_CBC_") {
			suites = append(suites, suite.ID)
		}
	}
	return suites
}
