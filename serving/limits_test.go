// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"math"
	"net/http"
	"runtime"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

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
	got.expect(t, 429, "too many concurrent reviews")
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

func TestLimitsFollowTheMachine(t *testing.T) {
	of := func(memory int64, change func(*Options)) Options {
		options := DefaultOptions()
		change(&options)
		options.derive(memory)
		return options
	}
	for name, test := range map[string]struct {
		memory                        int64
		connections, metrics, reviews int32
		bytes                         int64
	}{
		"no limit":             {math.MaxInt64, 4096, 256, math.MaxInt32, 64 << 20},
		"a container of 1 GiB": {1 << 30, 4096, 256, 37, 64 << 20},
		"256 MiB":              {256 << 20, 1024, 64, 7, 32 << 20},
		"128 MiB":              {128 << 20, 512, 32, 2, 20 << 20},
		"hardly any":           {8 << 20, 64, 16, 2, 20 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			got, reviews := of(test.memory, unchanged), min(test.reviews, int32(4*runtime.GOMAXPROCS(0)))
			if got.MaxConnections != test.connections || got.MaxMetricsConnections != test.metrics ||
				got.MaxWaitingReviews != 128*reviews || got.MaxBytesInFlight != test.bytes || got.MaxConcurrentReviews != reviews {
				t.Errorf("%d and %d connections, %d bytes, %d reviews, %d wait", got.MaxConnections, got.MaxMetricsConnections,
					got.MaxBytesInFlight, got.MaxConcurrentReviews, got.MaxWaitingReviews)
			}
			if errs := got.Settings.Validate(nil); len(errs) > 0 {
				t.Error(errs)
			}
			all := int64(got.MaxConnections)*connectionBytes + got.MaxBytesInFlight + int64(got.MaxConcurrentReviews)*ReviewBytes + ownBytes
			if test.memory >= 128<<20 && all > test.memory {
				t.Errorf("all that there may be at one time takes %d of %d bytes", all, test.memory)
			}
		})
	}
	set := of(8<<20, func(o *Options) {
		o.MaxConnections, o.MaxMetricsConnections, o.MaxConcurrentReviews, o.MaxWaitingReviews, o.MaxBytesInFlight = 5000, 7, 3, 9, 100<<20
	})
	if set.MaxConnections != 5000 || set.MaxMetricsConnections != 7 || set.MaxConcurrentReviews != 3 || set.MaxWaitingReviews != 9 || set.MaxBytesInFlight != 100<<20 {
		t.Error("a limit that was set is not what it was set to")
	}
}
