// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestOptions(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Options)
		want   []string
	}{
		"the defaults are in order": {func(*Options) {}, nil},
		"nothing set is refused limit by limit": {func(o *Options) { *o = Options{} }, []string{
			"GetCertificate is required", "read header timeout 0s", "read timeout 0s", "write timeout 0s", "idle timeout 0s",
			"header limit 0", "body limit 0"}},
		"a port beyond the last":                            {func(o *Options) { o.Port = 65536 }, []string{"port 65536"}},
		"a write timeout below the longest webhook timeout": {func(o *Options) { o.WriteTimeout = 29 * time.Second }, []string{"write timeout 29s must be at least 30s"}},
		"an idle timeout that races with kube-apiserver":    {func(o *Options) { o.IdleTimeout = 90 * time.Second }, []string{"idle timeout 1m30s must be above 1m30s"}},
		"fewer bytes in flight than one body may have":      {func(o *Options) { o.MaxBytesInFlight = o.MaxBodyBytes }, []string{"bytes in flight must be above the body limit"}},
		"negative limits": {func(o *Options) {
			o.MaxConcurrentReviews, o.MaxWaitingReviews, o.MinBodyRate, o.MaxConnections, o.MaxMetricsConnections = -1, -2, -3, -4, -5
		}, []string{"-1 concurrent reviews", "-2 waiting reviews", "body rate -3", "connection limit -4", "metrics connection limit -5"}},
		"a longest drain below the shortest":                {func(o *Options) { o.DrainMin, o.DrainMax = 2, 1 }, []string{"DrainMax 1ns"}},
		"a negative drain":                                  {func(o *Options) { o.DrainMin = -1 }, []string{"DrainMin -1ns"}},
		"a path without a slash, and one without a handler": {func(o *Options) { o.Routes = []Route{{Path: "a", Handler: echo}, {Path: "/b"}} }, []string{`path "a" must start`, `path "/b" has no handler`}},
		"a path that is taken twice":                        {func(o *Options) { o.Routes = []Route{{Path: "/a", Handler: echo}, {Path: "/a", Handler: echo}} }, []string{`path "/a" is already in use`}},
		"a path of the probes":                              {func(o *Options) { o.Routes = []Route{{Path: "/readyz", Handler: echo}} }, []string{`path "/readyz" is already in use`}},
		"a path of the metrics port for all callers":        {func(o *Options) { o.MetricsRoutes = map[string]http.Handler{"/a": http.NotFoundHandler()} }, []string{`path "/a" on the metrics port requires AuthenticateMetrics`}},
		"paths of the metrics port that cannot be served": {func(o *Options) {
			o.MetricsRoutes = map[string]http.Handler{"/{a": http.NotFoundHandler(), "/metrics": http.NotFoundHandler()}
		}, []string{`path "/{a" on the metrics port must start`, `path "/metrics" on the metrics port is already in use`}},
		"a version of TLS that there is not":       {func(o *Options) { o.MinTLSVersion = "1.2" }, []string{`minimum TLS version "1.2": choose one of VersionTLS10, `}},
		"a cipher suite that there is not":         {func(o *Options) { o.CipherSuites = []string{"TLS_NONE"} }, []string{"TLS_NONE", "choose among TLS_"}},
		"HTTP/2 without a cipher suite of its own": {func(o *Options) { o.HTTP2, o.CipherSuites = true, []string{"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"} }, []string{"HTTP/2 requires"}},
		"HTTP/2 with one, and with TLS 1.3 alone": {func(o *Options) {
			o.HTTP2, o.MinTLSVersion, o.CipherSuites = true, "VersionTLS13", []string{"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"}
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

func TestFlagsSetEveryLimit(t *testing.T) {
	options := DefaultOptions()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	options.AddFlags(flags)
	err := flags.Parse([]string{
		"--bind-address=::1", "--secure-port=1", "--metrics-bind-address=0", "--http2",
		"--read-header-timeout=1s", "--read-timeout=2s", "--write-timeout=31s", "--idle-timeout=100s",
		"--max-header-bytes=2", "--max-body-bytes=3", "--max-bytes-in-flight=4", "--max-concurrent-reviews=5", "--max-connections=6",
		"--max-waiting-reviews=9", "--min-body-rate=10", "--max-metrics-connections=11",
		"--drain-min=7s", "--drain-timeout=8s", "--tls-min-version=VersionTLS13", "--tls-cipher-suites=TLS_A,TLS_B",
	})
	if err != nil {
		t.Fatal(err)
	}
	got := []any{
		options.BindAddress, options.Port, options.MetricsBindAddress, options.HTTP2,
		options.ReadHeaderTimeout, options.ReadTimeout, options.WriteTimeout, options.IdleTimeout,
		options.MaxHeaderBytes, options.MaxBodyBytes, options.MaxBytesInFlight, options.MaxConcurrentReviews, options.MaxConnections,
		options.MaxWaitingReviews, options.MinBodyRate, options.MaxMetricsConnections,
		options.DrainMin, options.DrainMax, options.MinTLSVersion, strings.Join(options.CipherSuites, " "),
	}
	want := []any{
		"::1", 1, "0", true,
		1 * time.Second, 2 * time.Second, 31 * time.Second, 100 * time.Second,
		2, int64(3), int64(4), 5, 6,
		9, int64(10), 11,
		7 * time.Second, 8 * time.Second, "VersionTLS13", "TLS_A TLS_B",
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("flag %d set %v, want %v", i, got[i], want[i])
		}
	}
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Usage == "" {
			t.Errorf("flag %s has no help", flag.Name)
		}
	})
}
