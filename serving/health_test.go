// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestReadiness(t *testing.T) {
	var synced, expired, conversions atomic.Bool
	h := start(t, func(o *Options) {
		o.Routes = []Route{
			{Path: "/echo", Handler: echo},
			{Path: "/convert", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { conversions.Store(true) }), Ungated: true},
		}
		o.Checks = []Check{
			{Name: "caches", Gate: true, Ready: func() error {
				if !synced.Load() {
					return errors.New("not synced")
				}
				return nil
			}},
			{Name: "certificate", Ready: func() error {
				if expired.Load() {
					return errors.New("expired")
				}
				return nil
			}},
		}
	})
	plain := func(path string) reply {
		t.Helper()
		response, err := http.Get("http://" + h.MetricsAddr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		return readReply(t, response)
	}
	defer http.DefaultClient.CloseIdleConnections()

	t.Run("until the gate is open calls are sent to try again elsewhere", func(t *testing.T) {
		got := h.post("/echo", "hello")
		got.expect(t, 503, "not ready yet")
		if got.Header.Get("Retry-After") != "1" || !got.Close {
			t.Errorf("got header %v, want Retry-After: 1 and Connection: close", got.Header)
		}
		h.get("/readyz").expect(t, 503, "[-] caches: not synced\n[+] certificate\nnot ready\n")
		plain("/readyz").expect(t, 503, "[-] caches: not synced")
	})
	t.Run("what needs no caches is answered", func(t *testing.T) {
		h.post("/convert", "").expect(t, 200, "")
		if !conversions.Load() {
			t.Error("the handler was not called")
		}
	})
	t.Run("alive does not need ready", func(t *testing.T) {
		h.get("/livez").expect(t, 200, "ok")
		plain("/livez").expect(t, 200, "ok")
	})

	synced.Store(true)
	t.Run("ready means that calls are answered", func(t *testing.T) {
		h.get("/readyz").expect(t, 200, "ok\n")
		h.post("/echo", "hello").expect(t, 200, "hello")
		plain("/readyz").expect(t, 200, "ok\n")
	})
	t.Run("verbose names each check", func(t *testing.T) {
		h.get("/readyz?verbose").expect(t, 200, "[+] caches\n[+] certificate\nok\n")
		if got := h.get("/readyz"); strings.Contains(got.text, "caches") {
			t.Errorf("got %q", got.text)
		}
	})

	synced.Store(false)
	expired.Store(true)
	t.Run("checks that fail later fail /readyz alone", func(t *testing.T) {
		h.get("/readyz").expect(t, 503, "[-] caches: not synced\n[-] certificate: expired\nnot ready\n")
		h.post("/echo", "hello").expect(t, 200, "hello")
	})
}

func TestGateOpensByItself(t *testing.T) {
	var tries atomic.Int32
	h := start(t, func(o *Options) {
		o.Routes = []Route{{Path: "/echo", Handler: echo}}
		o.Checks = []Check{{Name: "caches", Gate: true, Ready: func() error {
			if tries.Add(1) < 3 {
				return errors.New("not synced")
			}
			return nil
		}}}
	})
	for !h.health.gateOpen.Load() {
		h.post("/livez", "")
	}
	before := tries.Load()
	h.post("/echo", "hello").expect(t, 200, "hello")
	if got := tries.Load(); got != before {
		t.Errorf("requests ran the check %d times", got-before)
	}
}

func TestTheGateOpensWhenItIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ready atomic.Bool
		var tries atomic.Int32
		s := &Server{health: newHealth([]Check{{Name: "caches", Gate: true, Ready: func() error {
			tries.Add(1)
			if !ready.Load() {
				return errors.New("not synced")
			}
			return nil
		}}}, nil, new(atomic.Bool))}
		began := time.Now()
		go s.health.waitForGate(t.Context())
		synctest.Wait()
		ready.Store(true)
		s.Recheck()
		<-s.Opened()
		if waited := time.Since(began); waited != 0 || tries.Load() != 2 {
			t.Errorf("open after %s and %d tries", waited, tries.Load())
		}
		// A check without notifications is polled.
		ready.Store(false)
		s.health = newHealth(s.health.checks, nil, new(atomic.Bool))
		go s.health.waitForGate(t.Context())
		synctest.Wait()
		ready.Store(true)
		<-s.Opened()
		if waited := time.Since(began); waited != gateInterval {
			t.Errorf("open after %s", waited)
		}
	})
}

func TestDetailsAreShownToThoseWhoAsk(t *testing.T) {
	var detail atomic.Pointer[string]
	h := start(t, func(o *Options) {
		o.Checks = []Check{{Name: "config", Ready: func() error { return nil }, Detail: func() string {
			if text := detail.Load(); text != nil {
				return *text
			}
			return ""
		}}}
	})
	h.get("/readyz?verbose").expect(t, 200, "[+] config\nok\n")
	text := "keeping the previous one"
	detail.Store(&text)
	h.get("/readyz?verbose").expect(t, 200, "[+] config: keeping the previous one\nok\n")
	h.get("/readyz").expect(t, 200, "ok\n")
}

func TestLivenessFailsByItsOwnChecksOnly(t *testing.T) {
	var stuck atomic.Bool
	h := start(t, func(o *Options) {
		o.Checks = []Check{{Name: "caches", Ready: func() error { return errors.New("not synced") }}}
		o.LiveChecks = []Check{{Name: "loop", Ready: func() error {
			if stuck.Load() {
				return errors.New("has not turned for a minute")
			}
			return nil
		}}}
	})
	for _, want := range []string{"200 ok\n", "500 [-] loop: has not turned for a minute\nnot live\n"} {
		response, err := http.Get("http://" + h.MetricsAddr().String() + "/livez")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if got := fmt.Sprintf("%d %s", response.StatusCode, body); err != nil || got != want {
			t.Errorf("/livez: %q, %v, not %q", got, err, want)
		}
		stuck.Store(true)
	}
}
