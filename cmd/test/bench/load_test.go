// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestLoaderSendsWhatTheAPIServerSends(t *testing.T) {
	var reviews atomic.Int64
	var mu sync.Mutex
	clients := map[string]bool{}
	l := loaderFor(t, func(w http.ResponseWriter, r *http.Request) {
		reviews.Add(1)
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != "review" || r.ContentLength != int64(len(body)) {
			t.Errorf("body %q of length %d: %v", body, r.ContentLength, err)
		}
		got := strings.Join([]string{r.Method, r.URL.String(), r.Proto, r.Header.Get("Content-Type"), r.Header.Get("Accept-Encoding")}, " ")
		if want := "POST /path?timeout=10s HTTP/1.1 application/json gzip"; got != want || r.TLS.Version != tls.VersionTLS13 {
			t.Errorf("got %s over TLS %x, want %s", got, r.TLS.Version, want)
		}
		mu.Lock()
		clients[r.RemoteAddr] = true
		mu.Unlock()
		_, _ = io.WriteString(w, "answer")
	})
	s, err := l.run(t.Context(), "/path", []byte("review"), len("answer"), 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if s.reviews != int(reviews.Load()) || len(s.latencies) != s.reviews || s.elapsed <= 0 {
		t.Errorf("%d reviews and %d latencies in %s, the server saw %d", s.reviews, len(s.latencies), s.elapsed, reviews.Load())
	}
	if len(clients) != connections {
		t.Errorf("%d connections, want %d", len(clients), connections)
	}
	answer, err := l.ask(t.Context(), "/path", []byte("review"))
	if err != nil || string(answer) != "answer" {
		t.Errorf("ask: %q, %v", answer, err)
	}
}

func TestLoaderDoesNotMeasureAServerThatFails(t *testing.T) {
	tests := map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"an error": {
			func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "overloaded", http.StatusServiceUnavailable)
			},
			"503 Service Unavailable: overloaded",
		},
		"another answer": {
			func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "other answer") },
			"an answer of 12 bytes where 6 were right",
		},
		"connections that are closed": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Connection", "close")
				_, _ = io.WriteString(w, "answer")
			},
			"closes connections",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := loaderFor(t, test.handler)
			_, err := l.run(t.Context(), "/", []byte("review"), len("answer"), 50*time.Millisecond)
			if err == nil { // on a busy machine each connection may have been used just once
				_, err = l.run(t.Context(), "/", []byte("review"), len("answer"), 50*time.Millisecond)
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error about %q", err, test.want)
			}
		})
	}
}

// loaderFor starts a server and a loader for it, which end with the test and
// must leave nothing behind.
func loaderFor(t *testing.T, handler http.HandlerFunc) *loader {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	server := httptest.NewTLSServer(handler)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	l := newLoader(server.URL, &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}})
	t.Cleanup(func() {
		l.close()
		server.Close()
	})
	return l
}
