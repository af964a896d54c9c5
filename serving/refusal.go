// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"fmt"
	"io"
	"net/http"
)

// refusal is a response of the listener itself instead of the handler.
type refusal struct {
	status int
	// reason is the value of the metric label.
	reason string
	text   string
	// again makes the API server retry the call on another connection, which it does for
	// 429 and 5xx with an integer Retry-After, up to ten times within its timeout
	// (k8s.io/client-go/rest, with_retry.go).
	again bool
	// ends closes the connection instead of reading the rest of the body.
	ends bool
	// structured makes the response a Status. The API server shows the plain text of most
	// errors to its user, but not that of 413.
	structured bool
}

var (
	notReady = &refusal{status: http.StatusServiceUnavailable, reason: "not_ready", again: true,
		text: "not ready yet: see /readyz"}
	busyReviews = &refusal{status: http.StatusTooManyRequests, reason: "concurrency", again: true,
		text: "too many concurrent reviews"}
	fullLine = &refusal{status: http.StatusTooManyRequests, reason: "waiting", again: true,
		text: "too many queued reviews"}
	busyBytes = &refusal{status: http.StatusTooManyRequests, reason: "bytes_in_flight", again: true,
		text: "too many bytes of request bodies in memory"}
	unknownPath = &refusal{status: http.StatusNotFound, reason: "path",
		text: "no webhook is served at this path"}
	notPost = &refusal{status: http.StatusMethodNotAllowed, reason: "method",
		text: "webhooks accept only POST"}
	slowBody = &refusal{status: http.StatusRequestTimeout, reason: "slow_body",
		text: "the body did not arrive in time"}
	// evictedBody may come from a legitimate caller over a slow network: it may retry.
	evictedBody = &refusal{status: http.StatusServiceUnavailable, reason: "evicted_body", again: true,
		text: "the body arrived too slowly while the server was short of memory"}
	brokenBody = &refusal{status: http.StatusBadRequest, reason: "broken_body",
		text: "the body could not be read completely"}
	unauthenticated = &refusal{status: http.StatusUnauthorized, reason: "unauthenticated", ends: true,
		text: "a trusted client certificate or token is required"}
	forbidden = &refusal{status: http.StatusForbidden, reason: "forbidden", ends: true,
		text: "the caller is not authorized"}
	// notAsked means that the caller could not be authenticated at the moment.
	notAsked = &refusal{status: http.StatusServiceUnavailable, reason: "authentication", again: true,
		text: "authentication is temporarily unavailable"}
	// panicked has no Retry-After: a panic is likely to recur, so the failure policy should
	// decide.
	panicked = &refusal{status: http.StatusInternalServerError, reason: "panic",
		text: "internal error: the webhook's log has the details"}
)

func tooLarge(limit int64) *refusal {
	return &refusal{status: http.StatusRequestEntityTooLarge, reason: "body_size",
		text: fmt.Sprintf("the body exceeds the limit of %d bytes (maxBodyBytes)", limit), structured: true}
}

// asStatus is a metav1.Status with the text.
func (r *refusal) asStatus() string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%q,"code":%d}`+"\n", r.text, r.status)
}

// refuse responds with a refusal. While draining, retryable calls are refused with an
// immediate retry: there is another replica, and this one will not recover.
func (s *Server) refuse(a *answer, refused *refusal) {
	s.metrics.refused.WithLabelValues(refused.reason).Inc()
	status, header := refused.status, a.Header()
	switch {
	case refused.again && s.draining.Load():
		status = http.StatusServiceUnavailable
		header.Set("Retry-After", "0")
	case refused.again:
		header.Set("Retry-After", "1")
	}
	if refused.again || refused.ends || status == http.StatusRequestTimeout {
		header.Set("Connection", "close")
		defer s.connections.waitsFor(a.connection)
	}
	if status == http.StatusMethodNotAllowed {
		header.Set("Allow", http.MethodPost)
	}
	if refused.structured {
		header.Set("Content-Type", "application/json")
		header.Set("X-Content-Type-Options", "nosniff")
		a.WriteHeader(status)
		_, _ = io.WriteString(a, refused.asStatus()) // the caller may have closed the connection
		return
	}
	http.Error(a, refused.text, status)
}
