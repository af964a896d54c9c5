// SPDX-License-Identifier: Apache-2.0

package store

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestOnlyAGoodAnswerIsAContact(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/good" {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = io.WriteString(w, "something")
	}))
	t.Cleanup(server.Close)
	var c contact
	client := &http.Client{Transport: c.wrap(http.DefaultTransport)}
	for _, tc := range []struct {
		path string
		want bool
	}{{"/bad", false}, {"/good", true}} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+tc.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got := !c.last().IsZero(); got != tc.want {
			t.Errorf("%s is a contact: %v", tc.path, got)
		}
	}
}
