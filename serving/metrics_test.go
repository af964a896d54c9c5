// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestMetrics(t *testing.T) {
	h := start(t, func(o *Options) {
		o.Routes = []Route{{Path: "/echo", Handler: echo}}
		o.CertificateNotAfter = func() time.Time { return time.Unix(1234567, 0) }
	})
	h.post("/echo", "hello").expect(t, 200, "hello")
	h.get("/echo").expect(t, 405, "")
	h.get("/made-up-by-the-caller").expect(t, 404, "")

	response, err := http.Get("http://" + h.MetricsAddr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	got := readReply(t, response)
	for _, want := range []string{
		`sallyport_serving_request_duration_seconds_bucket{code="200",path="/echo",le="5e-05"}`,
		`sallyport_serving_request_duration_seconds_bucket{code="200",path="/echo",le="10"} 1`,
		`sallyport_serving_request_duration_seconds_count{code="405",path="/echo"} 1`,
		`sallyport_serving_refused_total{reason="method"} 1`,
		`sallyport_serving_refused_total{reason="path"} 1`,
		`sallyport_serving_panics_total 0`,
		`sallyport_serving_connections 1`,
		`sallyport_serving_connections_evicted_total 0`,
		`sallyport_serving_tls_handshake_errors_total 0`,
		`sallyport_serving_reviews_in_flight 0`,
		`sallyport_serving_reviews_waiting 0`,
		`sallyport_serving_bytes_in_flight 0`,
		`sallyport_serving_certificate_expiration_timestamp_seconds 1.234567e+06`,
	} {
		if !strings.Contains(got.text, want) {
			t.Errorf("/metrics does not have %s", want)
		}
	}
	if strings.Contains(got.text, "made-up") {
		t.Error("a caller made a label value")
	}
}

func TestMetricsPortCanBeSwitchedOff(t *testing.T) {
	h := start(t, func(o *Options) { o.MetricsBindAddress = "0" })
	if h.MetricsAddr() != nil {
		t.Errorf("got address %s", h.MetricsAddr())
	}
	h.get("/livez").expect(t, 200, "ok")
}

func TestMetricsOfTwoServersInOneRegistryAreRefused(t *testing.T) {
	options, _ := testOptions(t)
	options.Registry = prometheus.NewRegistry()
	if _, err := New(options); err != nil {
		t.Fatal(err)
	}
	if _, err := New(options); err == nil || !strings.Contains(err.Error(), "register metrics") {
		t.Errorf("got error %v", err)
	}
}
