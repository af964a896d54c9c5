// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"testing"
)

// discard is a ResponseWriter that costs nothing.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}

// BenchmarkHandlerChain measures everything between net/http and the handler. Compare
// with "bare", where the handler reads the body itself.
func BenchmarkHandlerChain(b *testing.B) {
	review := bytes.Repeat([]byte("x"), 7<<10)
	answer := bytes.Repeat([]byte("y"), 900)
	length := []string{strconv.Itoa(len(answer))}

	bare := func(w http.ResponseWriter, r *http.Request) {
		data := make([]byte, r.ContentLength)
		if _, err := io.ReadFull(r.Body, data); err != nil {
			b.Error(err)
		}
		w.Header()["Content-Length"] = length
		_, _ = w.Write(answer)
	}
	taking := func(_ context.Context, w http.ResponseWriter, call Call) {
		if len(call.Body) != len(review) {
			b.Error(len(call.Body))
		}
		w.Header()["Content-Length"] = length
		_, _ = w.Write(answer)
	}

	options, _ := testOptions(b)
	options.Routes = []Route{{Path: "/bare", Handler: http.HandlerFunc(bare)}, {Path: "/taking", Answer: taking}}
	server, err := New(options)
	if err != nil {
		b.Fatal(err)
	}
	defer server.close()

	for _, test := range []struct {
		name, path string
		handle     http.HandlerFunc
	}{
		{"bare", "/bare", bare},
		{"chain, body copied by the handler", "/bare", server.serveHTTP},
		{"chain, body taken by the handler", "/taking", server.serveHTTP},
	} {
		b.Run(test.name, func(b *testing.B) {
			b.ReportAllocs()
			ctx, cancel := context.WithCancel(b.Context()) // as net/http has one for each request
			defer cancel()
			body := bytes.NewReader(review)
			target, err := url.Parse(test.path + "?timeout=10s")
			if err != nil {
				b.Fatal(err)
			}
			r := (&http.Request{Method: http.MethodPost, URL: target, ContentLength: int64(len(review)), Body: io.NopCloser(body)}).WithContext(ctx)
			w := &discard{header: http.Header{}}
			for b.Loop() {
				body.Reset(review)
				test.handle(w, r)
			}
		})
	}
}

// BenchmarkConnectionState measures the connection accounting of one request.
func BenchmarkConnectionState(b *testing.B) {
	options, _ := testOptions(b)
	server, err := New(options)
	if err != nil {
		b.Fatal(err)
	}
	defer server.close()
	conns := make([]fakeConn, 1000)
	for i := range conns {
		server.connections.stateChanged(&conns[i], http.StateNew)
	}
	for b.Loop() {
		server.connections.stateChanged(&conns[500], http.StateActive)
		server.connections.stateChanged(&conns[500], http.StateIdle)
	}
}

func BenchmarkTimeBudget(b *testing.B) {
	for b.Loop() {
		timeBudget("timeout=10s")
	}
}
