// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// Slow reviews of ten tenants in one namespace do not delay a review of another.
func TestSlowReviewsOfOneFlowHoldUpNoOther(t *testing.T) {
	bubble(t, func(o *Options) {
		o.MaxConcurrentReviews, o.MaxWaitingReviews = 8, 1000
		o.Routes = []Route{{
			Path: "/",
			Flow: func(body []byte) string { return string(body[:1]) },
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if body[0] == 'a' {
					select {
					case <-time.After(5 * time.Second):
					case <-r.Context().Done():
					}
				}
				_, _ = w.Write(body)
			}),
		}}
	}, func(t *testing.T, h *harness) {
		const request = "POST /?timeout=30s HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n"
		for range 100 {
			h.dial().send(request + "a")
		}
		synctest.Wait()
		began := time.Now()
		for range 50 {
			h.post("/", "b").expect(t, 200, "b")
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("50 reviews of another flow took %s of waiting", took)
		}
	})
}
