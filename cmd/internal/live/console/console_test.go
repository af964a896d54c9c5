// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/cmd/internal/live/doctor"
	"github.com/sallyport-io/sallyport/internal/registration"

	"github.com/sallyport-io/sallyport/cmd/internal/live/console/access"
)

// unreachable are options for a cluster that does not answer.
func unreachable() *Options {
	return &Options{
		Config: &rest.Config{Host: "https://127.0.0.1:1"}, Version: "v0", Doctor: doctor.Options{Registration: registration.Settings{Name: "sallyport"}},
	}
}

// visitPage requests a page of a local console.
func visitPage(t *testing.T, o *Options, r *http.Request) (*http.Response, string) {
	t.Helper()
	response := recorded(o.handler(access.Local), r).Result()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

func recorded(handler http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

func localRequest(method, target string, body io.Reader) *http.Request {
	r := httptest.NewRequestWithContext(context.Background(), method, target, body)
	r.Host = "127.0.0.1:8765"
	return r
}

func TestRequestsThatAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		method, target, host string
		want                 int
	}{
		"a name that resolves to a loopback address": {http.MethodGet, "/", "rebound.example.com:80", http.StatusForbidden},
		"another address":            {http.MethodGet, "/", "192.0.2.1", http.StatusForbidden},
		"no host":                    {http.MethodGet, "/", "", http.StatusForbidden},
		"a path outside":             {http.MethodGet, "/../../etc/passwd", "127.0.0.1", http.StatusNotFound},
		"an encoded path outside":    {http.MethodGet, "/%2e%2e/%2e%2e/etc/passwd", "127.0.0.1", http.StatusNotFound},
		"an unknown page":            {http.MethodGet, "/secrets", "127.0.0.1", http.StatusNotFound},
		"a change":                   {http.MethodPost, "/", "127.0.0.1", http.StatusMethodNotAllowed},
		"a deletion":                 {http.MethodDelete, "/", "[::1]:80", http.StatusMethodNotAllowed},
		"a namespace that is a path": {http.MethodGet, "/?namespace=../secrets", "localhost", http.StatusBadRequest},
		"a form that does not parse": {http.MethodGet, "/?namespace=%zz", "localhost", http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			r := localRequest(tc.method, "/", nil)
			r.URL.Path, r.URL.RawQuery, _ = strings.Cut(tc.target, "?")
			r.URL.Path = strings.ReplaceAll(r.URL.Path, "%2e", ".")
			r.Host = tc.host
			if response, body := visitPage(t, unreachable(), r); response.StatusCode != tc.want {
				t.Errorf("status %d, want %d:\n%s", response.StatusCode, tc.want, body)
			}
		})
	}
}

func TestPagesAllowNothingButTheirOwnStyleScriptAndForms(t *testing.T) {
	for _, target := range []string{"/", "/style.css", "/live.js", "/unknown"} {
		response, body := visitPage(t, unreachable(), localRequest(http.MethodGet, target, nil))
		policy := response.Header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none';") || strings.Contains(policy, "unsafe") || !strings.Contains(policy, " script-src 'self';") {
			t.Errorf("%s: policy %q", target, policy)
		}
		body = strings.Replace(body, `<script src="live.js" defer></script>`, "", 1)
		if strings.Contains(body, "<script") || strings.Contains(body, " style=") || response.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s has a script, a style or a cookie:\n%s", target, body)
		}
	}
}

func TestAnAPIServerThatIsGoneIsReportedOnThePage(t *testing.T) {
	response, body := visitPage(t, unreachable(), localRequest(http.MethodGet, "/", nil))
	if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" {
		t.Errorf("status %d, headers %v", response.StatusCode, response.Header)
	}
	for _, want := range []string{"The API server does not answer", `role="alert"`, "<nav "} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
}
