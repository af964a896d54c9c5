// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/cmd/internal/live/console/access"
	"github.com/sallyport-io/sallyport/cmd/internal/live/console/early"
)

func TestTheFrameOfAPageComesBeforeItsContent(t *testing.T) {
	for name, c := range map[string]struct {
		accept, target string
		err            error
		status         int
		early          bool // the frame comes first
		want           string
	}{
		"a page":                             {"text/html,*/*", "/slow?namespace=team-a", nil, http.StatusOK, true, "what was read"},
		"a problem":                          {"text/html,*/*", "/slow", context.DeadlineExceeded, http.StatusOK, true, "The API server does not answer"},
		"an invalid request":                 {"text/html,*/*", "/slow?namespace=x_y", nil, http.StatusBadRequest, false, "This page cannot be shown"},
		"a program has the status":           {"*/*", "/slow", context.DeadlineExceeded, http.StatusServiceUnavailable, false, "The API server does not answer"},
		"a program that asks for JSON, too":  {"application/json", "/slow", errors.New("no"), http.StatusInternalServerError, false, `"problem"`},
		"a program gets the whole at a time": {"*/*", "/slow", nil, http.StatusOK, false, "what was read"},
	} {
		t.Run(name, func(t *testing.T) {
			goOn := make(chan struct{})
			slow := page{path: "slow", title: "Slow page", show: func(ctx context.Context, v *visit) (templ.Component, error) {
				if c.early {
					<-goOn
				}
				v.heading = "Pod team-a/web"
				return templ.Raw("<p>what was read</p>"), c.err
			}}
			o := &Options{Config: &rest.Config{Host: "127.0.0.1:1"}, blank: time.Nanosecond}
			if !c.early {
				o.blank = time.Minute
			}
			server := httptest.NewServer(o.pageHandler(slow, access.Local, renderings(), streams()))
			defer server.Close()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+c.target, nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Accept", c.accept)
			response, err := server.Client().Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }()
			if response.StatusCode != c.status {
				t.Errorf("status %d", response.StatusCode)
			}
			body := bufio.NewReader(response.Body)
			if c.early {
				frame := ""
				for !strings.HasSuffix(frame, early.Reading) { // it blocks if the frame waits for the content
					part, err := body.ReadString('>')
					if frame += part; err != nil {
						t.Fatal(err)
					}
				}
				has(t, frame, "Slow page", `id="menu"`, "!what was read")
				close(goOn)
			}
			rest, err := io.ReadAll(body)
			if err != nil || !strings.Contains(string(rest), c.want) || c.early && strings.Count(string(rest), "<main") > 0 {
				t.Errorf("%v: %s", err, rest)
			}
		})
	}
}
