// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// announce begins a request with a body of the given length and sends part of it.
func announce(h *harness, length, sent int) *rawConn {
	c := h.dial()
	c.send(fmt.Sprintf("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", length))
	_, _ = io.WriteString(c.Conn, strings.Repeat("x", sent))
	return c
}

func TestLargeBodiesThatStallMakeRoom(t *testing.T) {
	bubble(t, func(o *Options) { o.MaxBytesInFlight = 64 << 20 }, func(t *testing.T, h *harness) {
		for range 6 {
			announce(h, 8<<20, 5<<20)
		}
		synctest.Wait()
		if held := h.bodies.inMemory(); held > 48<<20 {
			t.Errorf("large bodies hold %d bytes, which leaves no room for small ones", held)
		}
		for range 500 {
			h.post("/echo", "small").expect(t, 200, "small")
		}
		time.Sleep(youngBody)
		large := strings.Repeat("y", 8<<20)
		got := h.post("/echo", large)
		if got.StatusCode != http.StatusOK || got.text != large {
			t.Errorf("a large body that arrives is answered with %d", got.StatusCode)
		}
		if n := testutil.ToFloat64(h.metrics.refused.WithLabelValues("evicted_body")); n == 0 {
			t.Error("no body was cut")
		}
	})
}

func TestABodyThatIsCutIsAnsweredAndItsConnectionCloses(t *testing.T) {
	bubble(t, func(o *Options) { o.MaxBodyBytes, o.MaxBytesInFlight = 6000, 10000 }, func(t *testing.T, h *harness) {
		slower := announce(h, 6000, 10)
		faster := announce(h, 4000, 3000)
		time.Sleep(youngBody)
		h.post("/echo", strings.Repeat("y", 5000)).expect(t, 200, "y")
		got := slower.reply()
		got.expect(t, 503, "arrived too slowly")
		if got.Header.Get("Retry-After") != "1" || !got.Close {
			t.Errorf("got header %v, want Retry-After: 1 and Connection: close", got.Header)
		}
		slower.awaitClosed()
		faster.send(strings.Repeat("x", 1000))
		faster.reply().expect(t, 200, "x")
		if held := h.bodies.inMemory(); held != 0 {
			t.Errorf("%d bytes are still held", held)
		}
	})
}

func TestBodiesThatMayStillBeFastAreNotCut(t *testing.T) {
	bubble(t, func(o *Options) { o.MaxBodyBytes, o.MaxBytesInFlight = 6000, 10000 }, func(t *testing.T, h *harness) {
		young := announce(h, 6000, 10)
		synctest.Wait()
		h.post("/echo", strings.Repeat("y", 6000)).expect(t, 429, "too many bytes")
		young.send(strings.Repeat("x", 5990))
		young.reply().expect(t, 200, "x")
	})
}

func TestBodiesHaveToArriveAtARate(t *testing.T) {
	// trickle sends a body of 640 KiB at the given rate, and returns the answer and the
	// duration.
	trickle := func(t *testing.T, h *harness, rate int) (reply, time.Duration) {
		began := time.Now()
		const length = 640 << 10
		c := announce(h, length, 0)
		stop := make(chan struct{})
		go func() {
			defer close(stop)
			for sent := 0; sent < length; sent += rate {
				if _, err := io.WriteString(c.Conn, strings.Repeat("x", rate)); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		got := c.reply()
		took := time.Since(began)
		_ = c.NetConn().Close()
		<-stop
		return got, took
	}
	bubble(t, unchanged, func(t *testing.T, h *harness) {
		if got, _ := trickle(t, h, 64<<10); got.StatusCode != http.StatusOK {
			t.Errorf("a body at the least rate is answered with %d", got.StatusCode)
		}
		got, took := trickle(t, h, 1<<10)
		got.expect(t, 408, "did not arrive in time")
		if !got.Close || took != 6*time.Second {
			t.Errorf("cut off after %s, want 6s, and Connection: close: %v", took, got.Close)
		}
		got, _ = trickle(t, h, 32<<10)
		got.expect(t, 408, "did not arrive in time")
	})
}

func TestConnectionsWithSlowBodiesMakeRoomBeforeIdleOnes(t *testing.T) {
	bubble(t, func(o *Options) { o.MaxConnections = 10 }, func(t *testing.T, h *harness) {
		idle := h.dial()
		idle.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nidle")
		idle.reply().expect(t, 200, "idle")
		for range 9 {
			announce(h, 100_000, 10)
		}
		time.Sleep(youngBody)
		for range 5 {
			announce(h, 100_000, 10)
		}
		idle.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nidle")
		idle.reply().expect(t, 200, "idle")
		if n := h.connections.count(); n != 10 {
			t.Errorf("%d connections are open, want 10", n)
		}
		if n := testutil.ToFloat64(h.metrics.evicted); n != 5 {
			t.Errorf("%v connections were evicted, want 5", n)
		}
	})
}

func TestNewConnectionsAreServedWhereAllBodiesAreYoung(t *testing.T) {
	bubble(t, func(o *Options) { o.MaxConnections = 10 }, func(t *testing.T, h *harness) {
		for range 10 {
			announce(h, 100_000, 10)
		}
		synctest.Wait()
		h.post("/echo", "hello").expect(t, 200, "hello")
	})
}

// A refused caller that stays connected takes no seat from others.
func TestConnectionsThatWereRefusedMakeRoom(t *testing.T) {
	bubble(t, func(o *Options) {
		o.MaxConnections = 3
		o.Authenticate = func(r *http.Request) error {
			if r.Header.Get("Content-Length") == "100000" {
				return ErrUnauthenticated
			}
			return nil
		}
	}, func(t *testing.T, h *harness) {
		for range 3 {
			announce(h, 100_000, 0).reply().expect(t, 401, "")
		}
		h.post("/echo", "hello").expect(t, 200, "hello")
	})
}
