// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestOptions(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Options)
		want   []string
	}{
		"the defaults are in order": {func(*Options) {}, nil},
		"nothing set is refused limit by limit": {func(o *Options) { *o = Options{} }, []string{
			"GetCertificate is required", `readHeaderTimeout: Invalid value: "0s": must be positive`, "readTimeout: ", "writeTimeout: ", "idleTimeout: ",
			"maxHeaderBytes: Invalid value: 0", "maxBodyBytes: Invalid value: 0"}},
		"a port beyond the last":                            {func(o *Options) { o.SecurePort = 65536 }, []string{"securePort: Invalid value: 65536"}},
		"a write timeout below the longest webhook timeout": {func(o *Options) { o.WriteTimeout = 29 * time.Second }, []string{`writeTimeout: Invalid value: "29s": must be at least 30s`}},
		"an idle timeout that races with kube-apiserver":    {func(o *Options) { o.IdleTimeout = 90 * time.Second }, []string{`idleTimeout: Invalid value: "1m30s": must be above 1m30s`}},
		"fewer bytes in flight than one body may have":      {func(o *Options) { o.MaxBytesInFlight = o.MaxBodyBytes }, []string{"maxBytesInFlight: Invalid value: 8388608: must be above maxBodyBytes"}},
		"negative limits": {func(o *Options) {
			o.MaxConcurrentReviews, o.MaxWaitingReviews, o.MinBodyRate, o.MaxConnections, o.MaxMetricsConnections = -1, -2, -3, -4, -5
		}, []string{"maxConcurrentReviews: Invalid value: -1", "maxWaitingReviews: Invalid value: -2", "minBodyRate: Invalid value: -3", "maxConnections: Invalid value: -4", "maxMetricsConnections: Invalid value: -5"}},
		"a longest drain below the shortest":                {func(o *Options) { o.DrainMin, o.DrainTimeout = 2, 1 }, []string{`drainTimeout: Invalid value: "1ns": must not be below drainMin, 2ns`}},
		"a negative drain":                                  {func(o *Options) { o.DrainMin = -1 }, []string{`drainMin: Invalid value: "-1ns"`}},
		"a path without a slash, and one without a handler": {func(o *Options) { o.Routes = []Route{{Path: "a", Handler: echo}, {Path: "/b"}} }, []string{`path "a" must start`, `path "/b" has no handler`}},
		"a path that is taken twice":                        {func(o *Options) { o.Routes = []Route{{Path: "/a", Handler: echo}, {Path: "/a", Handler: echo}} }, []string{`path "/a" is already in use`}},
		"a path of the probes":                              {func(o *Options) { o.Routes = []Route{{Path: "/readyz", Handler: echo}} }, []string{`path "/readyz" is already in use`}},
		"a path of the metrics port for all callers":        {func(o *Options) { o.MetricsRoutes = map[string]http.Handler{"/a": http.NotFoundHandler()} }, []string{`path "/a" on the metrics port requires AuthenticateMetrics`}},
		"paths of the metrics port that cannot be served": {func(o *Options) {
			o.MetricsRoutes = map[string]http.Handler{"/{a": http.NotFoundHandler(), "/metrics": http.NotFoundHandler()}
		}, []string{`path "/{a" on the metrics port must start`, `path "/metrics" on the metrics port is already in use`}},
		"a version of TLS that there is not": {func(o *Options) { o.TLSMinVersion = "1.2" }, []string{`tlsMinVersion: Unsupported value: "1.2": supported values: "VersionTLS10", `}},
		"a cipher suite that there is not":   {func(o *Options) { o.TLSCipherSuites = []string{"TLS_NONE"} }, []string{"TLS_NONE", "supported values: \"TLS_"}},
		"HTTP/2 without a cipher suite of its own": {func(o *Options) {
			o.HTTP2, o.TLSCipherSuites = true, []string{"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"}
		}, []string{"HTTP/2 requires"}},
		"HTTP/2 with one, and with TLS 1.3 alone": {func(o *Options) {
			o.HTTP2, o.TLSMinVersion, o.TLSCipherSuites = true, "VersionTLS13", []string{"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"}
		}, nil},
		"checks without name or func, and with equal names": {func(o *Options) { o.Checks = []Check{{}, {Name: "a"}, {Name: "a"}} }, []string{"a check has no name", `check "a" has no func`, `duplicate check "a"`}},
	} {
		t.Run(name, func(t *testing.T) {
			options, _ := testOptions(t)
			test.change(&options)
			_, err := New(options)
			if (err == nil) != (test.want == nil) {
				t.Fatalf("got error %v, want %q", err, test.want)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got error %q, want it to say %q", err, want)
				}
			}
		})
	}
}
