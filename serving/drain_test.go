// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// drained is a server that drains in fake time.
type drained struct {
	*harness
	began time.Time
}

// draining runs test in a bubble.
func draining(t *testing.T, change func(*Options), test func(t *testing.T, h *drained)) {
	bubble(t, change, func(t *testing.T, h *harness) { test(t, &drained{harness: h}) })
}

// terminate is SIGTERM.
func (h *drained) terminate() {
	h.began = time.Now()
	h.stop()
	synctest.Wait()
}

// expectEnd waits for Run to return and checks when that was, after terminate.
func (h *drained) expectEnd(want time.Duration) {
	h.t.Helper()
	if err := <-h.ended; err != nil {
		h.t.Errorf("Run returned %v", err)
	}
	if took := time.Since(h.began); took != want {
		h.t.Errorf("drained for %s, want %s", took, want)
	}
}

func unchanged(*Options) {}

func TestDrainWithoutConnectionsTakesTheShortestTime(t *testing.T) {
	draining(t, unchanged, func(t *testing.T, h *drained) {
		h.terminate()
		h.expectEnd(15 * time.Second)
	})
}

func TestDrainAnswersNewConnectionsAndClosesThem(t *testing.T) {
	draining(t, unchanged, func(t *testing.T, h *drained) {
		h.terminate()
		time.Sleep(14 * time.Second)
		got := h.post("/echo", "hello")
		got.expect(t, 200, "hello")
		if !got.Close {
			t.Error("want Connection: close")
		}
		h.expectEnd(15 * time.Second)
	})
}

func TestDrainFailsReadinessAtOnce(t *testing.T) {
	draining(t, unchanged, func(t *testing.T, h *drained) {
		h.get("/readyz").expect(t, 200, "ok")
		h.terminate()
		got := h.get("/readyz")
		got.expect(t, 503, "[-] shutdown: draining")
		if !got.Close {
			t.Error("want Connection: close")
		}
		h.get("/livez").expect(t, 200, "ok")
		h.expectEnd(15 * time.Second)
	})
}

func TestDrainLeavesIdleConnectionsToTheirClients(t *testing.T) {
	draining(t, unchanged, func(t *testing.T, h *drained) {
		if got := h.post("/echo", "hello"); got.Close {
			t.Error("the connection was closed before draining")
		}
		h.terminate()
		time.Sleep(90 * time.Second)
		if n := h.connections.count(); n != 1 {
			t.Fatalf("%d connections are open, want the idle one", n)
		}
		got := h.post("/echo", "one more")
		got.expect(t, 200, "one more")
		if !got.Close {
			t.Error("want Connection: close")
		}
		h.expectEnd(90 * time.Second)
	})
}

func TestDrainAcceptsAsLongAsAConnectionIsLeft(t *testing.T) {
	draining(t, unchanged, func(t *testing.T, h *drained) {
		idle := h.dial()
		idle.send("POST /echo HTTP/1.1\r\nHost: x\r\nUser-Agent: kube-apiserver-admission\r\nContent-Length: 0\r\n\r\n")
		idle.reply().expect(t, 200, "")
		go idle.awaitClosed() // a pipe wants a reader for TLS's last word
		h.terminate()
		time.Sleep(60 * time.Second)
		h.post("/echo", "late").expect(t, 200, "late")
		h.expectEnd(95 * time.Second)
	})
}

func TestDrainAnswersWhoCameInTheLastMoment(t *testing.T) {
	draining(t, unchanged, func(t *testing.T, h *drained) {
		var last *rawConn
		h.listener.(*pipes).onClose = func() { last = h.dial() }
		h.terminate()
		time.Sleep(15 * time.Second)
		synctest.Wait()
		last.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello")
		last.reply().expect(t, 200, "hello")
		last.awaitClosed()
		h.expectEnd(15 * time.Second)
	})
}

func TestDrainDoesNotWaitForIdleConnectionsOfOthers(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		t.Run(method, func(t *testing.T) {
			draining(t, unchanged, func(t *testing.T, h *drained) {
				h.agent = "curl/8"
				if method == http.MethodPost {
					h.post("/echo", "hello").expect(t, 200, "hello")
				} else {
					h.agent = apiServerAgent // nor for one that only probed
					h.get("/readyz").expect(t, 200, "ok")
				}
				h.terminate()
				time.Sleep(14 * time.Second)
				if n := h.connections.count(); n != 1 {
					t.Errorf("%d connections are open before the shortest time is over, want the idle one", n)
				}
				h.expectEnd(15 * time.Second)
			})
		})
	}
}

func TestDrainEndsWhenTheClientClosesTheLastIdleConnection(t *testing.T) {
	draining(t, unchanged, func(t *testing.T, h *drained) {
		h.post("/echo", "hello")
		h.terminate()
		time.Sleep(40 * time.Second)
		h.client.CloseIdleConnections()
		h.expectEnd(40 * time.Second)
	})
}

func TestDrainCutsIdleConnectionsAtTheLongestTime(t *testing.T) {
	draining(t, unchanged, func(t *testing.T, h *drained) {
		h.post("/echo", "hello")
		h.terminate()
		h.expectEnd(95 * time.Second)
	})
}

func TestDrainClosesAfterAnAnswerThatWasUnderWay(t *testing.T) {
	var waiting *held
	route := func(o *Options) {
		waiting = newHeld()
		o.Routes = []Route{{Path: "/held", Handler: waiting}}
	}
	draining(t, route, func(t *testing.T, h *drained) {
		got := make(chan reply, 1)
		go func() { got <- h.post("/held", "") }()
		<-waiting.called
		h.terminate()
		time.Sleep(20 * time.Second)
		waiting.release()
		answer := <-got
		answer.expect(t, 200, "done")
		if !answer.Close {
			t.Error("want Connection: close")
		}
		h.expectEnd(20 * time.Second)
	})
}

func TestDrainGivesTheLastRequestsAWhile(t *testing.T) {
	late := func(o *Options) {
		o.Routes = append(o.Routes,
			Route{Path: "/slow", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(4 * time.Second) })},
			Route{Path: "/stuck", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Minute) })})
	}
	t.Run("one that ends in it is answered", func(t *testing.T) {
		draining(t, late, func(t *testing.T, h *drained) {
			h.post("/echo", "hello")
			h.terminate()
			time.Sleep(94 * time.Second)
			h.post("/slow", "").expect(t, 200, "")
			if err := <-h.ended; err != nil {
				t.Errorf("Run returned %v", err)
			}
		})
	})
	t.Run("one that does not is cut off", func(t *testing.T) {
		draining(t, late, func(t *testing.T, h *drained) {
			h.post("/echo", "hello")
			h.terminate()
			time.Sleep(94 * time.Second)
			failed := make(chan error, 1)
			go func() {
				response, err := h.client.Post(h.url("/stuck"), "", nil)
				if err == nil {
					_ = response.Body.Close()
				}
				failed <- err
			}()
			h.expectEnd(100 * time.Second)
			if err := <-failed; err == nil {
				t.Error("a request without end was answered")
			}
			time.Sleep(time.Minute) // until the handler ends
		})
	})
}

func TestDrainSendsWhatItCannotAnswerElsewhereAtOnce(t *testing.T) {
	var waiting *held
	full := func(o *Options) {
		waiting = newHeld()
		o.MaxConcurrentReviews = 1
		o.Routes = []Route{{Path: "/held", Handler: waiting}, {Path: "/echo", Handler: echo}}
	}
	draining(t, full, func(t *testing.T, h *drained) {
		go h.post("/held", "")
		<-waiting.called
		h.terminate()
		got := h.post("/echo?timeout=3s", "hello")
		got.expect(t, 503, "too many concurrent reviews")
		if got.Header.Get("Retry-After") != "0" || !got.Close {
			t.Errorf("got header %v, want Retry-After: 0 and Connection: close", got.Header)
		}
		waiting.release()
		h.expectEnd(15 * time.Second)
	})
}

func TestDrainOverHTTP2(t *testing.T) {
	draining(t, func(o *Options) { o.HTTP2 = true }, func(t *testing.T, h *drained) {
		if got := h.post("/echo", "hello"); got.Proto != "HTTP/2.0" {
			t.Fatalf("got %s", got.Proto)
		}
		h.terminate()
		time.Sleep(20 * time.Second)
		h.post("/echo", "one more").expect(t, 200, "one more")
		if err := <-h.ended; err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
}

func TestCloseEndsDraining(t *testing.T) {
	draining(t, unchanged, func(t *testing.T, h *drained) {
		h.post("/echo", "hello")
		h.terminate()
		time.Sleep(3 * time.Second)
		h.close()
		h.expectEnd(3 * time.Second)
	})
}

func TestRunOnlyOnce(t *testing.T) {
	draining(t, unchanged, func(t *testing.T, h *drained) {
		if err := h.Run(t.Context()); err == nil {
			t.Error("it ran twice at one time")
		}
	})
}

func TestAddressInUse(t *testing.T) {
	h := start(t, unchanged)
	options, _ := testOptions(t)
	options.SecurePort = int32(h.Addr().(*net.TCPAddr).Port)
	second, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Run(t.Context()); err == nil {
		t.Error("want an error for an address in use")
	}
	options.SecurePort, options.MetricsBindAddress = 0, h.MetricsAddr().String()
	third, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	if err := third.Run(t.Context()); err == nil {
		t.Error("want an error for a metrics address in use")
	}
	if second.Addr() != nil || third.Addr() != nil {
		t.Error("a server that does not listen has an address")
	}
}
