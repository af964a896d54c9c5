// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// HTTP/2 rapid reset (CVE-2023-44487): streams are opened and immediately reset, so
// that they no longer count while their handlers continue.
func TestRapidReset(t *testing.T) {
	var atWork, most atomic.Int64
	let := make(chan struct{})
	h := start(t, func(o *Options) {
		o.HTTP2 = true
		o.MaxConcurrentReviews, o.MaxWaitingReviews = 8, 50
		o.Routes = []Route{{Path: "/echo", Handler: echo}, {Path: "/slow", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			now := atWork.Add(1)
			for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
			}
			<-let
			atWork.Add(-1)
		})}}
	})
	defer close(let)
	config := h.tls.Clone()
	config.NextProtos = []string{"h2"}
	conn, err := tls.Dial("tcp", h.Addr().String(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(conn, conn)
	if err := framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	var header bytes.Buffer
	encoder := hpack.NewEncoder(&header)
	for _, field := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":authority", "x"}, {":path", "/slow"}} {
		if err := encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if frame, err := framer.ReadFrame(); err != nil || frame.Header().Type == http2.FrameGoAway {
				return
			}
		}
	}()
	const streams = 20_000
	for i := range uint32(streams) {
		err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: header.Bytes(), EndStream: true, EndHeaders: true})
		if err == nil {
			err = framer.WriteRSTStream(2*i+1, http2.ErrCodeCancel)
		}
		if err != nil { // the server has ended it
			break
		}
	}
	<-ended
	h.post("/echo", "hello").expect(t, 200, "hello")
	if n := most.Load(); n > 8 {
		t.Errorf("%d handlers were at work", n)
	}
	if waiting := h.seats.Queued(); waiting > 50 {
		t.Errorf("%d wait", waiting)
	}
}
