// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestSlots(t *testing.T) {
	t.Run("who waits gets a slot when one is given back, in order", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSlots(1)
			until := time.Now().Add(time.Minute)
			s.take(t.Context(), until)
			got := make(chan int, 3)
			for i := range 3 {
				go func() {
					if s.take(t.Context(), until) {
						got <- i
					}
				}()
				synctest.Wait()
			}
			if n := s.waiting.Load(); n != 3 {
				t.Errorf("%d wait, want 3", n)
			}
			for want := range 3 {
				s.give()
				if i := <-got; i != want {
					t.Errorf("%d got the slot, want %d", i, want)
				}
			}
			if n := s.waiting.Load(); n != 0 {
				t.Errorf("%d wait, want none", n)
			}
		})
	})
	t.Run("who waits gives up at the given time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSlots(1)
			began := time.Now()
			s.take(t.Context(), began)
			if s.take(t.Context(), began.Add(time.Second)) {
				t.Error("two have the one slot")
			}
			if waited := time.Since(began); waited != time.Second {
				t.Errorf("waited %s, want 1s", waited)
			}
		})
	})
	t.Run("who waits gives up with its context", func(t *testing.T) {
		s := newSlots(1)
		ctx, cancel := context.WithCancel(t.Context())
		s.take(ctx, time.Now())
		cancel()
		if s.take(ctx, time.Now().Add(time.Hour)) {
			t.Error("two have the one slot")
		}
	})
}

func TestShedding(t *testing.T) {
	waiting := newHeld()
	defer waiting.release()
	h := start(t, func(o *Options) {
		o.MaxConcurrentReviews = 1
		o.Routes = []Route{{Path: "/held", Handler: waiting}, {Path: "/echo", Handler: echo}}
	})
	first := h.dial()
	first.send("POST /held HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
	<-waiting.called

	got := h.post("/echo?timeout=20ms", "")
	got.expect(t, 429, "too many reviews")
	if got.Header.Get("Retry-After") != "1" || !got.Close {
		t.Errorf("got header %v, want Retry-After: 1 and Connection: close", got.Header)
	}
	if n := testutil.ToFloat64(h.metrics.refused.WithLabelValues("concurrency")); n != 1 {
		t.Errorf("counted %v, want 1", n)
	}
	h.get("/readyz").expect(t, 200, "ok")

	waiting.release()
	first.reply().expect(t, 200, "done")
	h.post("/echo", "hello").expect(t, 200, "hello")
}

func TestSlowReadersOfAnswersHoldUpNobody(t *testing.T) {
	large := make([]byte, 64<<20) // more than the sockets take
	written := make(chan struct{})
	h := start(t, func(o *Options) {
		o.MaxConcurrentReviews = 1
		o.Routes = []Route{
			{Path: "/echo", Handler: echo},
			{Path: "/large", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusOK)
				close(written)
				_, _ = w.Write(large)
			})},
		}
	})
	h.dial().send("POST /large HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
	<-written
	h.post("/echo", "hello").expect(t, 200, "hello")
}

func TestConcurrencyFollowsTheProcessors(t *testing.T) {
	options := DefaultOptions()
	if got, want := options.concurrency(), 4*runtime.GOMAXPROCS(0); got != want {
		t.Errorf("got %d, want %d", got, want)
	}
	options.MaxConcurrentReviews = 3
	if got := options.concurrency(); got != 3 {
		t.Errorf("got %d, want 3", got)
	}
}
