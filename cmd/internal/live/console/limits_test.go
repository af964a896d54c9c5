// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/a-h/templ"
	"k8s.io/client-go/rest"
)

// byHeader identifies users by a header.
func byHeader(r *http.Request, base *rest.Config) (string, *rest.Config, error) {
	if user := r.Header.Get("X-User"); user != "" {
		return user, base, nil
	}
	return "", nil, errors.New("no user")
}

// serveOne serves a page of which show has the content.
func serveOne(t *testing.T, show func(ctx context.Context, v *visit) (templ.Component, error)) (visit func(user, accept string) *http.Response) {
	t.Helper()
	p := page{title: "Test", live: true, show: show}
	server := httptest.NewServer(unreachable().pageHandler(p, byHeader, renderings(), streams()))
	t.Cleanup(server.Close)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel) // before the server waits for its connections
	return func(user, accept string) *http.Response {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-User", user)
		request.Header.Set("Accept", accept)
		response, err := server.Client().Do(request)
		if err != nil {
			if ctx.Err() == nil {
				t.Error(err)
			}
			return &http.Response{Body: http.NoBody}
		}
		t.Cleanup(func() { _ = response.Body.Close() })
		return response
	}
}

func TestAUserWhoRendersManyPagesDelaysOnlyThatUser(t *testing.T) {
	const requests = maxWaiting + maxUserRenderings + 10
	var rendering, most atomic.Int32
	release := make(chan struct{})
	visit := serveOne(t, func(ctx context.Context, v *visit) (templ.Component, error) {
		if v.user == "greedy" {
			most.Store(max(most.Load(), rendering.Add(1)))
			defer rendering.Add(-1)
			select {
			case <-release:
			case <-ctx.Done():
			}
		}
		return nothing("shown to " + v.user), nil
	})
	statuses := make(chan *http.Response, requests)
	for range requests {
		go func() { statuses <- visit("greedy", "") }()
	}
	for range 10 { // beyond what may wait
		response := <-statuses
		body, _ := io.ReadAll(response.Body)
		if response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") == "" || !strings.Contains(string(body), "pages of yours are waiting already") {
			t.Errorf("status %d: %s", response.StatusCode, body)
		}
	}
	for range 3 {
		response := visit("modest", "")
		if body, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusOK || !strings.Contains(string(body), "shown to modest") {
			t.Errorf("another user: status %d: %s", response.StatusCode, body)
		}
	}
	close(release)
	for range requests - 10 {
		if response := <-statuses; response.StatusCode != http.StatusOK {
			t.Errorf("one that waited: status %d", response.StatusCode)
		}
	}
	if most.Load() != maxUserRenderings {
		t.Errorf("%d pages of a user were rendered at the same time", most.Load())
	}
}

func TestStreamsOfOneUserRefuseOnlyThatUser(t *testing.T) {
	visit := serveOne(t, func(_ context.Context, v *visit) (templ.Component, error) { return nothing(v.user), nil })
	open, refused := 0, 0
	for range maxStreams {
		switch response := visit("greedy", "text/event-stream"); response.StatusCode {
		case http.StatusOK:
			open++
		case http.StatusTooManyRequests:
			refused++
			if body, _ := io.ReadAll(response.Body); !strings.Contains(string(body), "close one") {
				t.Errorf("refused with %q", body)
			}
		default:
			t.Errorf("status %d", response.StatusCode)
		}
	}
	if open != maxUserStreams || refused != maxStreams-maxUserStreams {
		t.Errorf("%d open, %d refused", open, refused)
	}
	if response := visit("modest", "text/event-stream"); response.StatusCode != http.StatusOK {
		t.Errorf("another user: status %d", response.StatusCode)
	}
	for _, user := range []string{"a", "b", "c", "d", "e", "f", "g"} { // with the one of modest, 64 are never exceeded
		for range maxUserStreams {
			_ = visit(user, "text/event-stream")
		}
	}
	if response := visit("last", "text/event-stream"); response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("beyond the limit of all: status %d", response.StatusCode)
	}
}

func TestAPageThatIsTooLargeSaysSo(t *testing.T) {
	visit := serveOne(t, func(_ context.Context, v *visit) (templ.Component, error) {
		return nothing(strings.Repeat("x", maxAnswer)), nil
	})
	response := visit("anna", "")
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusBadRequest || len(body) > 32<<10 {
		t.Errorf("status %d, %d bytes, %v", response.StatusCode, len(body), err)
	}
	has(t, string(body), "This page is too large", "the page has more than 1 MiB", "Choose one namespace", "<nav ")
}
