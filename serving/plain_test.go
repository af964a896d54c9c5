// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

func (h *harness) plainURL(path string) string { return "http://" + h.MetricsAddr().String() + path }

// probe requests the metrics port on a new connection, like the kubelet.
func (h *harness) probe(path string) reply {
	h.t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Get(h.plainURL(path))
	if err != nil {
		h.t.Fatal(err)
	}
	return readReply(h.t, response)
}

func TestConnectionsToTheMetricsPortAreLimited(t *testing.T) {
	for name, says := range map[string]string{
		"that say nothing":              "",
		"that wait for another request": "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n",
		"with a header without an end":  "GET /metrics HTTP/1.1\r\n",
		"with a body that nobody reads": "GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nx",
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, func(o *Options) { o.MaxMetricsConnections = 10 })
			for i := range 200 {
				conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", h.MetricsAddr().String())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = conn.Close() })
				_, _ = io.WriteString(conn, says) // may be cut by then
				if i%20 == 0 {
					h.probe("/livez").expect(t, 200, "ok")
					h.probe("/readyz").expect(t, 200, "ok")
				}
			}
			if n := h.plainConnections.count(); n > 10 {
				t.Errorf("%d connections are open", n)
			}
		})
	}
}

func TestFloodsOfTheMetricsPortDoNotReachTheOther(t *testing.T) {
	h := start(t, func(o *Options) { o.Routes = []Route{{Path: "/echo", Handler: echo}} })
	for i := range 2000 {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", h.MetricsAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if i%200 == 0 {
			h.post("/echo", fmt.Sprint(i)).expect(t, 200, fmt.Sprint(i))
		}
	}
	if n := h.plainConnections.count(); n > maxMetricsConnections {
		t.Errorf("%d connections are open", n)
	}
}

func TestWhoReadsMetricsIsAsked(t *testing.T) {
	var asked string
	h := start(t, func(o *Options) {
		o.MetricsRoutes = map[string]http.Handler{"/private": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "for few") })}
		o.AuthenticateMetrics = func(r *http.Request) error {
			asked = r.URL.Path
			switch r.Header.Get("Authorization") {
			case "Bearer good":
				return nil
			case "Bearer known":
				return ErrForbidden
			case "":
				return ErrUnauthenticated
			}
			return errors.New("the API server is away")
		}
	})
	transport := &http.Transport{TLSClientConfig: h.tls.Clone(), DisableKeepAlives: true}
	ask := func(path, token string) reply {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+h.MetricsAddr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		return readReply(t, response)
	}
	ask("/metrics", "good").expect(t, 200, "sallyport_serving_")
	ask("/private", "good").expect(t, 200, "for few")
	if asked != "/private" {
		t.Errorf("asked who may read %q", asked)
	}
	for token, status := range map[string]int{"": 401, "known": 403, "other": 503} {
		if got := ask("/private", token); got.StatusCode != status || strings.Contains(got.text, "few") {
			t.Errorf("with token %q: %d %s", token, got.StatusCode, got.text)
		}
		got := ask("/metrics", token)
		got.expect(t, status, "")
		if strings.Contains(got.text, "sallyport_") || strings.Contains(got.text, "away") {
			t.Errorf("with token %q: got %q", token, got.text)
		}
	}
	ask("/livez", "").expect(t, 200, "ok")
	ask("/readyz", "").expect(t, 200, "ok")
	response, err := http.Get(h.plainURL("/metrics"))
	if err != nil {
		t.Fatal(err)
	}
	readReply(t, response).expect(t, 400, "HTTP request to an HTTPS server")
	http.DefaultClient.CloseIdleConnections()
}
