// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Callers whose authentication waits for a slow API server take no connection from
// known callers.
func TestWhoHasToBeAskedForHoldsUpNobody(t *testing.T) {
	bubble(t, func(o *Options) {
		o.MaxConnections = 5
		o.Authenticate = func(r *http.Request) error {
			if r.Header.Get("X-Caller") == "friend" {
				return nil
			}
			<-r.Context().Done()
			return r.Context().Err()
		}
	}, func(t *testing.T, h *harness) {
		const request = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nX-Caller: "
		for range 20 {
			h.dial().send(request + "nobody\r\n\r\n")
		}
		synctest.Wait()
		friend := h.dial()
		for range 3 {
			friend.send(request + "friend\r\n\r\nhi")
			friend.reply().expect(t, 200, "hi")
		}
		if n := h.connections.count(); n != 5 {
			t.Errorf("%d connections are open, want 5", n)
		}
		time.Sleep(maxTimeout) // all authentications have timed out
	})
}

func TestWhoMayNotCallIsRefusedWithoutAReason(t *testing.T) {
	reasons := map[string]error{
		"nobody":    fmt.Errorf("%w: the details", ErrUnauthenticated),
		"stranger":  fmt.Errorf("%w: the details", ErrForbidden),
		"undecided": errors.New("the details"),
	}
	h := start(t, func(o *Options) {
		o.Routes = []Route{
			{Path: "/echo", Handler: echo},
			{Path: "/convert", Handler: echo, Anonymous: true},
		}
		o.Authenticate = func(r *http.Request) error { return reasons[r.Header.Get("X-Caller")] }
	})
	for name, test := range map[string]struct {
		caller, path string
		status       int
		text         string
		again        string
	}{
		"who is known calls":                    {"friend", "/echo", 200, "hello", ""},
		"who is not known gets 401":             {"nobody", "/echo", 401, "a trusted client certificate or token is required", ""},
		"who is known and may not gets 403":     {"stranger", "/echo", 403, "not authorized", ""},
		"of whom nobody can tell comes again":   {"undecided", "/echo", 503, "temporarily unavailable", "1"},
		"conversion is for everybody":           {"nobody", "/convert", 200, "hello", ""},
		"a path that is not served has no door": {"nobody", "/other", 404, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url(test.path), strings.NewReader("hello"))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("X-Caller", test.caller)
			response, err := h.client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			got := readReply(t, response)
			got.expect(t, test.status, test.text)
			if strings.Contains(got.text, "details") {
				t.Errorf("tells the caller why: %s", got.text)
			}
			if after := got.Header.Get("Retry-After"); after != test.again {
				t.Errorf("Retry-After %q, want %q", after, test.again)
			}
			if refused := test.status == 401 || test.status == 403; refused && !got.Close {
				t.Error("the connection stays open for a body that nobody reads")
			}
		})
	}
	for path, want := range map[string]string{"/livez": "ok", "/readyz": "ok"} {
		h.get(path).expect(t, 200, want)
	}
}

func TestTheBodyOfWhoMayNotCallIsNotRead(t *testing.T) {
	h := start(t, func(o *Options) {
		o.Routes = []Route{{Path: "/echo", Handler: echo}}
		o.Authenticate = func(*http.Request) error { return ErrUnauthenticated }
	})
	conn := h.dial()
	conn.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
	conn.reply().expect(t, 401, "") // and it never came
	conn.awaitClosed()
}

func TestPrivatePaths(t *testing.T) {
	var log bytes.Buffer
	var seen []string
	var plain atomic.Bool
	segments := map[string][]string{"/a": {"new-a", "old-a"}, "/a/b": {"new-b"}, "/none": nil, "/empty": {""}}
	remember := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.URL.Path, r.RequestURI)
		if r.URL.Query().Has("panic") {
			panic("x")
		}
		_, _ = io.Copy(w, r.Body)
	})
	h := start(t, func(o *Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.PathSegments = func(path string) []string { return segments[path] }
		o.PlainPaths = plain.Load
		for path := range segments {
			o.Routes = append(o.Routes, Route{Path: path, Handler: remember})
		}
	})
	for path, status := range map[string]int{
		"/a/new-a": 200, "/a/old-a": 200, "/a/b/new-b": 200, "/a/new-a?timeout=5s": 200, "/a/new-a?panic": 500,
		"/a": 404, "/a/": 404, "/a/new-b": 404, "/a/new-aa": 404, "/a/new-a/": 404, "/a/new-a/x": 404, "/a/b": 404, "//": 404, "/": 404,
		"/none/": 404, "/none/x": 404, "/empty/": 404, "/empty": 404,
	} {
		h.post(path, "hello").expect(t, status, "")
	}
	plain.Store(true)
	for path, status := range map[string]int{"/a": 200, "/a/b": 200, "/a/new-a": 200, "/a/x": 404, "/x": 404} {
		h.post(path, "hello").expect(t, status, "")
	}
	h.get("/livez").expect(t, 200, "ok")
	if all := strings.Join(seen, " "); strings.Contains(all, "new-") || strings.Contains(all, "old-") {
		t.Errorf("handlers see %s", all)
	}
	if metrics := h.shownMetrics(); strings.Contains(metrics, "new-") || !strings.Contains(metrics, `path="/a"`) {
		t.Errorf("metrics show %s", metrics)
	}
	h.close()
	if err := <-h.ended; err != nil {
		t.Error(err)
	}
	h.ended <- nil
	if strings.Contains(log.String(), "new-") {
		t.Errorf("the log shows %s", log.String())
	}
}

// shownMetrics returns the content of /metrics.
func (h *harness) shownMetrics() string {
	h.t.Helper()
	response, err := http.Get("http://" + h.MetricsAddr().String() + "/metrics")
	if err != nil {
		h.t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	return readReply(h.t, response).text
}
