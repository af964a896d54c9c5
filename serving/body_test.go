// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// unsized hides the length of a body, so that the client uses chunks.
type unsized struct{ io.Reader }

func TestBodyLimit(t *testing.T) {
	h := start(t, func(o *Options) {
		o.Routes = []Route{{Path: "/echo", Handler: echo}}
		o.MaxBodyBytes, o.MaxBytesInFlight = 100_000, 200_000
	})
	text := func(n int) string { return strings.Repeat("x", n) }
	for name, test := range map[string]struct {
		body    io.Reader
		status  int
		message string
	}{
		"no body":                                    {nil, 200, ""},
		"one byte":                                   {strings.NewReader("x"), 200, "x"},
		"exactly the first buffer":                   {strings.NewReader(text(firstBuffer)), 200, text(firstBuffer)},
		"one byte more than the first buffer":        {strings.NewReader(text(firstBuffer + 1)), 200, text(firstBuffer + 1)},
		"exactly the limit":                          {strings.NewReader(text(100_000)), 200, text(100_000)},
		"one byte above the limit":                   {strings.NewReader(text(100_001)), 413, "limit of 100000 bytes"},
		"9 MiB":                                      {strings.NewReader(text(9 << 20)), 413, "limit of 100000 bytes"},
		"no body, in chunks":                         {unsized{strings.NewReader("")}, 200, ""},
		"one byte, in chunks":                        {unsized{strings.NewReader("x")}, 200, "x"},
		"exactly the first buffer, in chunks":        {unsized{strings.NewReader(text(firstBuffer))}, 200, text(firstBuffer)},
		"exactly the limit, in chunks":               {unsized{strings.NewReader(text(100_000))}, 200, text(100_000)},
		"one byte above the limit, in chunks":        {unsized{strings.NewReader(text(100_001))}, 413, "limit of 100000 bytes"},
		"far above the limit, in chunks":             {unsized{strings.NewReader(text(300_000))}, 413, "limit of 100000 bytes"},
		"one byte short of the limit, and in chunks": {unsized{strings.NewReader(text(99_999))}, 200, text(99_999)},
	} {
		t.Run(name, func(t *testing.T) {
			got := h.do(http.MethodPost, "/echo", test.body)
			if got.StatusCode != test.status {
				t.Fatalf("got status %d, want %d", got.StatusCode, test.status)
			}
			if test.status == 200 && got.text != test.message {
				t.Errorf("got %d bytes, want the %d that were sent", len(got.text), len(test.message))
			}
			if !strings.Contains(got.text, test.message) {
				t.Errorf("got %q, want it to say %q", got.text, test.message)
			}
		})
	}
	if held := h.bodies.inMemory(); held != 0 {
		t.Errorf("%d bytes are still held", held)
	}
}

func TestARouteIsAFunctionOfContextAndBody(t *testing.T) {
	h := start(t, func(o *Options) {
		o.Routes = []Route{{Path: "/", Answer: func(ctx context.Context, w http.ResponseWriter, call Call) {
			if _, ok := ctx.Deadline(); !ok || call.Request.URL.Path != "/" {
				t.Errorf("a call of %s", call.Request.URL)
			}
			_, _ = w.Write(call.Body)
		}}}
	})
	h.post("/", "hello").expect(t, 200, "hello")
}

func TestBrokenBodies(t *testing.T) {
	handled := make(chan struct{}, 1)
	h := start(t, func(o *Options) {
		o.Routes = []Route{{Path: "/", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { handled <- struct{}{} })}}
	})
	const post = "POST / HTTP/1.1\r\nHost: x\r\n"

	t.Run("a body shorter than its content length is refused", func(t *testing.T) {
		c := h.dial()
		c.send(post + "Content-Length: 5\r\n\r\nabc")
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		c.reply().expect(t, 400, "could not be read completely")
	})
	t.Run("a broken chunk is refused", func(t *testing.T) {
		c := h.dial()
		c.send(post + "Transfer-Encoding: chunked\r\n\r\nnot a size\r\n")
		c.reply().expect(t, 400, "could not be read completely")
	})
	t.Run("contradicting content lengths are refused", func(t *testing.T) {
		c := h.dial()
		c.send(post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef")
		c.reply().expect(t, 400, "")
	})
	t.Run("a negative content length is refused", func(t *testing.T) {
		c := h.dial()
		c.send(post + "Content-Length: -1\r\n\r\n")
		c.reply().expect(t, 400, "")
	})
	select {
	case <-handled:
		t.Error("a handler was called")
	default:
	}
	if held := h.bodies.inMemory(); held != 0 {
		t.Errorf("%d bytes are still held", held)
	}
}

func TestSlowBodyEndsAtTheReadTimeout(t *testing.T) {
	bubble(t, func(o *Options) { o.MinBodyRate = 0 }, func(t *testing.T, h *harness) {
		began := time.Now()
		c := h.dial()
		c.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabc")
		got := c.reply()
		got.expect(t, 408, "did not arrive in time")
		if !got.Close {
			t.Error("want Connection: close")
		}
		if took := time.Since(began); took != 15*time.Second {
			t.Errorf("took %s, want 15s", took)
		}
		c.awaitClosed()
		if held := h.bodies.inMemory(); held != 0 {
			t.Errorf("%d bytes are still held", held)
		}
	})
}

func TestSlowBodiesHoldUpNobody(t *testing.T) {
	h := start(t, func(o *Options) {
		o.MaxConcurrentReviews = 1
		o.Routes = []Route{{Path: "/echo", Handler: echo}}
	})
	for range 20 {
		h.dial().send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 8000000\r\n\r\nabc")
	}
	h.post("/echo", "good").expect(t, 200, "good")
}

func TestBytesInFlight(t *testing.T) {
	waiting := newHeld()
	defer waiting.release()
	h := start(t, func(o *Options) {
		o.MaxBodyBytes, o.MaxBytesInFlight = 6000, 10000
		o.MaxConcurrentReviews = 10
		o.Routes = []Route{{Path: "/held", Handler: waiting}, {Path: "/echo", Handler: echo}}
	})
	body := strings.Repeat("x", 6000)
	first := h.dial()
	first.send("POST /held HTTP/1.1\r\nHost: x\r\nContent-Length: 6000\r\n\r\n" + body)
	<-waiting.called

	got := h.post("/echo", body)
	got.expect(t, 429, "too many bytes")
	if got.Header.Get("Retry-After") != "1" || !got.Close {
		t.Errorf("got header %v, want Retry-After: 1 and Connection: close", got.Header)
	}
	h.post("/echo", body[:4000]).expect(t, 200, "x")

	waiting.release()
	first.reply().expect(t, 200, "done")
	h.post("/echo", body).expect(t, 200, body)
}

func FuzzReadBody(f *testing.F) {
	f.Add([]byte("abc"), int64(3))
	f.Add(bytes.Repeat([]byte("x"), 20_000), int64(-1))
	f.Add([]byte("abc"), int64(5))
	f.Add([]byte{}, int64(0))
	const limit = 16_000
	f.Fuzz(func(t *testing.T, sent []byte, declared int64) {
		if declared < -1 {
			return // net/http has refused these
		}
		options := Options{Settings: Settings{MaxBodyBytes: limit, MaxBytesInFlight: 2 * limit, MaxConnections: 1}}
		s := &Server{options: options, bodies: newBodies(&options)}
		a := &arrival{}
		r := &http.Request{ContentLength: declared, Body: io.NopCloser(bytes.NewReader(sent))}
		if declared >= 0 {
			r.Body = io.NopCloser(io.LimitReader(r.Body, declared)) // as net/http does
		}
		data, refused := s.readBody(r, a)
		held := a.held
		s.bodies.give(a)
		if s.bodies.inMemory() != 0 {
			t.Errorf("%d bytes are held", s.bodies.inMemory())
		}
		if int64(cap(data)) > held {
			t.Errorf("%d bytes are in memory, %d are accounted for", cap(data), held)
		}
		want := sent
		if declared >= 0 {
			want = sent[:min(declared, int64(len(sent)))]
		}
		switch {
		case refused == nil && !bytes.Equal(data, want):
			t.Errorf("got %d bytes, want %d", len(data), len(want))
		case refused == nil && len(data) > limit, refused != nil && len(want) <= limit && declared <= limit:
			t.Errorf("%d bytes, declared as %d, were refused: %v", len(want), declared, refused)
		}
	})
}
