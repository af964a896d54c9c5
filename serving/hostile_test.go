// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// besideGoodTraffic makes calls with two clients, like API servers, until hostile
// returns. No call may fail.
func besideGoodTraffic(t *testing.T, h *harness, hostile func(ctx context.Context)) {
	t.Helper()
	done := make(chan struct{})
	calls := make([]int, 2)
	var callers sync.WaitGroup
	for i := range calls {
		callers.Go(func() {
			transport := &http.Transport{TLSClientConfig: h.tls.Clone()}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport}
			for {
				response, err := client.Post(h.url("/echo?timeout=10s"), "application/json", strings.NewReader("hello"))
				if err != nil {
					t.Errorf("a good call fails: %v", err)
					return
				}
				text, err := io.ReadAll(response.Body)
				_ = response.Body.Close()
				if err != nil || response.StatusCode != http.StatusOK || string(text) != "hello" {
					t.Errorf("a good call gets %d %q, %v", response.StatusCode, text, err)
					return
				}
				calls[i]++
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	hostile(t.Context())
	close(done)
	callers.Wait()
	for i, n := range calls {
		if n == 0 {
			t.Errorf("caller %d got no answer", i)
		}
	}
}

func TestIdleSocketsAreNoObstacle(t *testing.T) {
	const sockets = 5000
	h := start(t, func(o *Options) { o.Routes = []Route{{Path: "/echo", Handler: echo}} })
	besideGoodTraffic(t, h, func(ctx context.Context) {
		for range sockets {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", h.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
		}
	})
	if open := h.connections.count(); open > int(h.options.MaxConnections) {
		t.Errorf("%d connections are open", open)
	}
	h.post("/echo", "hello").expect(t, 200, "hello")
}

func TestFloodsOfHeadersAreNoObstacle(t *testing.T) {
	h := start(t, func(o *Options) { o.Routes = []Route{{Path: "/echo", Handler: echo}} })
	lines := map[string]string{
		"one long line":        "X: " + strings.Repeat("x", 1<<20),
		"many short lines":     strings.Repeat("X: y\r\n", 200_000),
		"a long request line":  "",
		"lines without an end": strings.Repeat("y", 1<<20),
	}
	besideGoodTraffic(t, h, func(ctx context.Context) {
		var flood sync.WaitGroup
		for name, header := range lines {
			first := "POST /echo HTTP/1.1\r\nHost: x\r\n"
			if header == "" {
				first, header = "POST /", strings.Repeat("x", 1<<20)
			}
			for range 8 {
				conn := h.dial()
				flood.Go(func() {
					_, _ = io.WriteString(conn, first+header) // cut off at some point
					_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
					answer, _ := io.ReadAll(conn)
					if len(answer) > 0 && !strings.HasPrefix(string(answer), "HTTP/1.1 4") {
						t.Errorf("%s: answers %.100q", name, answer)
					}
				})
			}
		}
		flood.Wait()
	})
}

func TestBadRequestsAreRefusedOrCutAndTheServerGoesOn(t *testing.T) {
	var called int
	h := start(t, func(o *Options) {
		o.Routes = []Route{{Path: "/", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called++ })}, {Path: "/echo", Handler: echo}}
	})
	const post = "POST / HTTP/1.1\r\nHost: x\r\n"
	for name, text := range map[string]string{
		"nothing of HTTP":                       "\x00\x01\x02\x03\r\n\r\n",
		"a preface of HTTP/2":                   "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"HTTP/0.9":                              "POST /\r\n\r\n",
		"a version that does not exist":         "POST / HTTP/3.7\r\nHost: x\r\n\r\n",
		"no version":                            "POST / \r\nHost: x\r\n\r\n",
		"no host":                               "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
		"two hosts":                             post + "Host: y\r\nContent-Length: 0\r\n\r\n",
		"an invalid host":                       "POST / HTTP/1.1\r\nHost: a b\r\nContent-Length: 0\r\n\r\n",
		"a method with a space in front":        " POST / HTTP/1.1\r\nHost: x\r\n\r\n",
		"an invalid method":                     "PO\x00ST / HTTP/1.1\r\nHost: x\r\n\r\n",
		"another method":                        "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
		"CONNECT":                               "CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n",
		"TRACE":                                 "TRACE / HTTP/1.1\r\nHost: x\r\n\r\n",
		"a URL that cannot be read":             "POST /%zz HTTP/1.1\r\nHost: x\r\n\r\n",
		"a URL with a null byte":                "POST /\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
		"a path with dots":                      "POST /echo/.. HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
		"two slashes":                           "POST // HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
		"a header name with a space":            post + "Content-Length : 0\r\n\r\n",
		"a header without a colon":              post + "nothing\r\n\r\n",
		"a header with a null byte":             post + "X: \x00\r\n\r\n",
		"a header that is folded":               post + " folded\r\n\r\n",
		"a content length that is not a number": post + "Content-Length: five\r\n\r\n",
		"a content length with a sign":          post + "Content-Length: +5\r\n\r\nhello",
		"a content length beyond int64":         post + "Content-Length: 99999999999999999999\r\n\r\n",
		"a content length beyond the limit":     post + "Content-Length: 8388609\r\n\r\n",
		"two content lengths":                   post + "Content-Length: 5, 6\r\n\r\nhello",
		"an invalid encoding":                   post + "Transfer-Encoding: rot13\r\n\r\nhello",
		"two encodings":                         post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		"a length in words":                     post + "Transfer-Encoding: chunked\r\n\r\nfive\r\nhello\r\n0\r\n\r\n",
		"a chunk beyond int64":                  post + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
		"a chunk that is longer than it says":   post + "Transfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n",
		"a chunk with an extension without end": post + "Transfer-Encoding: chunked\r\n\r\n2;" + strings.Repeat("x", 8<<10) + "\r\nhe\r\n0\r\n\r\n",
		"an expectation that nobody can meet":   post + "Expect: the-unexpected\r\nContent-Length: 0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			conn := h.dial()
			// The server may answer and cut the connection before it has read
			// everything.
			if _, err := io.WriteString(conn, text); err == nil {
				_ = conn.CloseWrite()
			}
			answer, _ := io.ReadAll(conn.reader) // an error is a connection that was cut
			status := string(answer[:min(len(answer), len("HTTP/1.1 4"))])
			if len(answer) > 0 && status != "HTTP/1.1 4" && status != "HTTP/1.0 4" && !strings.HasPrefix(string(answer), "HTTP/1.1 505") && !strings.HasPrefix(string(answer), "HTTP/1.1 501") {
				t.Errorf("answers %.200q", answer)
			}
			h.post("/echo", "hello").expect(t, 200, "hello")
		})
	}
	if called != 0 {
		t.Errorf("a handler was called %d times", called)
	}
	if held := h.bodies.inMemory(); held != 0 {
		t.Errorf("%d bytes are still held", held)
	}
	if panics := testutil.ToFloat64(h.metrics.panics); panics != 0 {
		t.Errorf("%v panics", panics)
	}
}
