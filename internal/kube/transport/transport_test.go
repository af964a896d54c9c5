// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

func TestARequestEndsAtItsTimeoutWithoutAWarning(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.Close()
	var log bytes.Buffer
	klog.LogToStderr(false)
	klog.SetOutput(&log)
	defer klog.LogToStderr(true)
	asked := 0
	config := &rest.Config{Host: server.URL, BearerToken: "token", Timeout: 50 * time.Millisecond}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return Around(next, func(r *http.Request) (*http.Response, error) {
			asked++
			return next.RoundTrip(r)
		})
	})
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.ServerVersion(); err == nil {
		t.Error("a request without an answer does not fail")
	}
	klog.Flush()
	if asked == 0 || log.Len() > 0 {
		t.Errorf("asked %d times, with the log\n%s", asked, &log)
	}
}
