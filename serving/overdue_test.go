// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-io/sallyport/test/lab"
)

// A handler that ignores its context is logged while it runs: it may never return.
func TestAHandlerThatDoesNotReturnIsLogged(t *testing.T) {
	var log lab.Log
	release := make(chan struct{})
	bubble(t, func(o *Options) {
		release = make(chan struct{}) // of this bubble
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		o.Routes = append(o.Routes, Route{Path: "/hang", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release })})
	}, func(t *testing.T, h *harness) {
		h.post("/echo", "{}")
		answered := make(chan reply, 1)
		go func() {
			defer close(answered) // also if the call fails
			answered <- h.post("/hang?timeout=2s", "{}")
		}()
		time.Sleep(6 * time.Second) // late, but not long
		synctest.Wait()
		if strings.Contains(log.String(), "has not returned") {
			t.Errorf("logged too early:\n%s", log.String())
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if n := strings.Count(log.String(), "has not returned"); n != 1 || !strings.Contains(log.String(), "path=/hang late=8") {
			t.Errorf("logged %d times:\n%s", n, log.String())
		}
		close(release)
		<-answered
		h.post("/echo", "{}")
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := strings.Count(log.String(), "has not returned"); n != 1 {
			t.Errorf("logged %d times after it returned:\n%s", n, log.String())
		}
	})
}
