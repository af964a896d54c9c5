// SPDX-License-Identifier: Apache-2.0

package once

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

func TestAPageAsksOnce(t *testing.T) {
	large := strings.Repeat("x", maxKept)
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path == "/busy" {
			w.WriteHeader(http.StatusTooManyRequests)
		}
		if r.URL.Path == "/large" {
			_, _ = io.WriteString(w, large)
		}
		_, _ = io.WriteString(w, r.URL.Path+r.Header.Get("Impersonate-User"))
	}))
	defer server.Close()
	for name, c := range map[string]struct {
		method, path, other string
		user                string // of every second request
		want                int64
		body                string
	}{
		"the same":                       {http.MethodGet, "/a?limit=1", "/a?limit=1", "", 1, "/a"},
		"with a time limit":              {http.MethodGet, "/a?limit=1", "/a?limit=1&timeout=30s", "", 1, "/a"},
		"something else":                 {http.MethodGet, "/a?limit=1", "/a?limit=2", "", 2, "/a"},
		"for another user":               {http.MethodGet, "/a", "/a", "anna", 2, "/a"},
		"a dry run":                      {http.MethodPost, "/a", "/a", "", 8, "/a"},
		"pods, which are read in parts":  {http.MethodGet, "/api/v1/pods", "/api/v1/pods", "", 8, "/api/v1/pods"},
		"an error, which may end":        {http.MethodGet, "/busy", "/busy", "", 8, "/busy"},
		"an answer that is not kept":     {http.MethodGet, "/large", "/large", "", 8, large + "/large"},
		"one of a page that was not yet": {http.MethodGet, "/a?limit=1", "/a?limit=1", "", 1, "/a"},
	} {
		t.Run(name, func(t *testing.T) {
			asked.Store(0)
			config := Sharing(&rest.Config{})
			var running sync.WaitGroup
			for i := range 8 {
				transport, err := rest.TransportFor(config) // each client has its own
				if err != nil {
					t.Fatal(err)
				}
				running.Go(func() {
					path, want := c.path, c.body
					if i%2 == 1 {
						path = c.other
					}
					request, err := http.NewRequestWithContext(t.Context(), c.method, server.URL+path, nil)
					if err != nil {
						t.Error(err)
						return
					}
					if i%2 == 1 && c.user != "" {
						request.Header.Set("Impersonate-User", c.user)
						want += c.user
					}
					response, err := transport.RoundTrip(request)
					if err != nil {
						t.Error(err)
						return
					}
					defer func() { _ = response.Body.Close() }()
					if body, err := io.ReadAll(response.Body); err != nil || string(body) != want {
						t.Errorf("%d bytes, %v, want %d", len(body), err, len(want))
					}
				})
			}
			running.Wait()
			if got := asked.Load(); got != c.want {
				t.Errorf("%d requests, want %d", got, c.want)
			}
		})
	}
}
