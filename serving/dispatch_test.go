// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/sallyport-io/sallyport/test/lab"
)

func TestRouting(t *testing.T) {
	h := start(t, func(o *Options) {
		o.Routes = []Route{{Path: "/echo", Handler: echo}, {Path: "/silent", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}}
	})
	for name, test := range map[string]struct {
		method, path string
		status       int
		text         string
	}{
		"a path that is served":                    {"POST", "/echo", 200, "hello"},
		"a handler that writes nothing":            {"POST", "/silent", 200, ""},
		"an unknown path":                          {"POST", "/other", 404, "no webhook is served at this path"},
		"a path below one that is served":          {"POST", "/echo/", 404, "no webhook"},
		"a path that would be served once cleaned": {"POST", "//echo", 404, "no webhook"},
		"the root":            {"POST", "/", 404, "no webhook"},
		"GET instead of POST": {"GET", "/echo", 405, "accept only POST"},
		"PUT instead of POST": {"PUT", "/echo", 405, "accept only POST"},
		"the metrics are not served to the callers": {"GET", "/metrics", 404, "no webhook"},
	} {
		t.Run(name, func(t *testing.T) {
			got := h.do(test.method, test.path, strings.NewReader("hello"))
			got.expect(t, test.status, test.text)
			if allow := got.Header.Get("Allow"); (allow == "POST") != (test.status == 405) {
				t.Errorf("got Allow: %q with status %d", allow, test.status)
			}
		})
	}
}

func TestProtocols(t *testing.T) {
	route := Route{Path: "/", Handler: echo}
	t.Run("HTTP/1.1 is all that is offered by default", func(t *testing.T) {
		h := start(t, func(o *Options) { o.Routes = []Route{route} })
		if got := h.post("/", ""); got.Proto != "HTTP/1.1" {
			t.Errorf("got %s", got.Proto)
		}
	})
	t.Run("HTTP/2 is spoken if it is switched on", func(t *testing.T) {
		h := start(t, func(o *Options) { o.Routes, o.HTTP2 = []Route{route}, true })
		got := h.post("/", "hello")
		got.expect(t, 200, "hello")
		if got.Proto != "HTTP/2.0" {
			t.Errorf("got %s", got.Proto)
		}
	})
	t.Run("TLS 1.1 is refused, and counted without a line in the log", func(t *testing.T) {
		var log lab.Log
		h := start(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		h.tls.MinVersion, h.tls.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
		conn, err := tls.Dial("tcp", h.Addr().String(), h.tls)
		if err == nil {
			_ = conn.Close()
			t.Error("the handshake succeeded")
		}
		for testutil.ToFloat64(h.metrics.handshakeErrors) == 0 {
			time.Sleep(time.Millisecond)
		}
		if strings.Contains(log.String(), "handshake") {
			t.Errorf("got log %s", log.String())
		}
	})
	t.Run("no session is resumed", func(t *testing.T) {
		h := start(t, func(o *Options) { o.Routes = []Route{route} })
		h.tls.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		for range 2 {
			c := h.dial()
			c.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
			c.reply().expect(t, 200, "")
			if c.ConnectionState().DidResume {
				t.Error("a ticket was made")
			}
		}
	})
	t.Run("plain HTTP gets an answer that says so", func(t *testing.T) {
		h := start(t, func(*Options) {})
		response, err := http.Get("http://" + h.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		readReply(t, response).expect(t, 400, "HTTP request to an HTTPS server")
		http.DefaultClient.CloseIdleConnections()
	})
	t.Run("a header beyond the limit is refused", func(t *testing.T) {
		h := start(t, func(o *Options) { o.Routes = []Route{route} })
		c := h.dial()
		c.send("POST / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 21<<10))
		c.reply().expect(t, 431, "")
	})
	t.Run("a header that does not come in time ends the connection", func(t *testing.T) {
		bubble(t, unchanged, func(t *testing.T, h *harness) {
			c := h.dial()
			began := time.Now()
			c.send("POST / HTTP/1.1\r\n")
			c.awaitClosed()
			if took := time.Since(began); took != 5*time.Second {
				t.Errorf("took %s, want 5s", took)
			}
		})
	})
	t.Run("a connection without a request outlasts the API server's patience, and not much more", func(t *testing.T) {
		bubble(t, unchanged, func(t *testing.T, h *harness) {
			c := h.dial()
			c.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
			c.reply().expect(t, 200, "")
			began := time.Now()
			c.awaitClosed()
			if took := time.Since(began); took != 130*time.Second {
				t.Errorf("took %s, want 130s", took)
			}
		})
	})
}

func TestHandlerHasTheCallersDeadline(t *testing.T) {
	waits := func(o *Options) {
		o.Routes = []Route{{Path: "/", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			_, _ = io.WriteString(w, r.Context().Err().Error())
		})}}
	}
	for query, want := range map[string]time.Duration{
		"?timeout=10s": 9500 * time.Millisecond,
		"?timeout=30s": 29500 * time.Millisecond, // beyond the read timeout, which must not matter any more
		"":             29500 * time.Millisecond,
	} {
		t.Run("with query "+query, func(t *testing.T) {
			bubble(t, waits, func(t *testing.T, h *harness) {
				began := time.Now()
				h.post("/"+query, "x").expect(t, 200, context.DeadlineExceeded.Error())
				if took := time.Since(began); took != want {
					t.Errorf("the context ended after %s, want %s", took, want)
				}
			})
		})
	}
}

func TestHandlerIsToldThatTheCallerHasGone(t *testing.T) {
	ended := make(chan error, 1)
	called := make(chan struct{})
	h := start(t, func(o *Options) {
		o.Routes = []Route{{Path: "/", Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(called)
			<-r.Context().Done()
			ended <- r.Context().Err()
		})}}
	})
	c := h.dial()
	c.send("POST /?timeout=30s HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx")
	<-called
	_ = c.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestPanics(t *testing.T) {
	var log lab.Log
	h := start(t, func(o *Options) {
		o.MaxConcurrentReviews = 1
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		o.Routes = []Route{
			{Path: "/echo", Handler: echo},
			{Path: "/value", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("s3cret") })},
			{Path: "/nil", Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { r.URL = nil; _ = r.URL.Path })},
			{Path: "/late", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "10")
				_, _ = io.WriteString(w, "half")
				panic("s3cret")
			})},
			{Path: "/abort", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })},
		}
	})
	t.Run("a panic is answered with 500 and no word of its value", func(t *testing.T) {
		got := h.post("/value", "")
		got.expect(t, 500, "internal error")
		if strings.Contains(got.text, "s3cret") || got.Header.Get("Retry-After") != "" {
			t.Errorf("got %v %q", got.Header, got.text)
		}
	})
	t.Run("a runtime error is logged with its text and stack", func(t *testing.T) {
		h.post("/nil", "").expect(t, 500, "internal error")
		for _, want := range []string{"nil pointer dereference", "dispatch_test.go", "path=/nil"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log does not have %q: %s", want, log.String())
			}
		}
	})
	t.Run("an answer that was cut short by a panic does not look whole", func(t *testing.T) {
		response, err := h.client.Post(h.url("/late"), "", nil)
		if err != nil {
			return // cut before the header
		}
		defer func() { _ = response.Body.Close() }()
		if text, err := io.ReadAll(response.Body); err == nil {
			t.Errorf("got %q without an error", text)
		}
	})
	t.Run("a handler can cut the connection", func(t *testing.T) {
		if response, err := h.client.Post(h.url("/abort"), "", nil); err == nil {
			_ = response.Body.Close()
			t.Errorf("got status %d", response.StatusCode)
		}
	})
	t.Run("the slots and the server survive", func(t *testing.T) {
		h.post("/echo", "hello").expect(t, 200, "hello")
	})
	t.Run("each panic is counted, and no value logged", func(t *testing.T) {
		if got := testutil.ToFloat64(h.metrics.panics); got != 3 {
			t.Errorf("counted %v, want 3", got)
		}
		if strings.Contains(log.String(), "s3cret") {
			t.Errorf("the log has the value: %s", log.String())
		}
	})
}
