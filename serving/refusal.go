// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"fmt"
	"io"
	"net/http"
)

// refusal is an answer of the listener itself, in place of the handler's.
type refusal struct {
	status int
	// reason is the label in the metrics.
	reason string
	text   string
	// again invites the API server to repeat the call on another connection,
	// which it does for 429 and 5xx with an integer Retry-After, up to ten times
	// within its timeout (k8s.io/client-go/rest, with_retry.go).
	again bool
	// ends closes the connection, whose body nobody wants to read.
	ends bool
	// structured makes the answer a Status. The API server shows the plain text of most
	// errors to its user; of 413 it says that there was no more information.
	structured bool
}

var (
	notReady = &refusal{status: http.StatusServiceUnavailable, reason: "not_ready", again: true,
		text: "not ready yet: /readyz says what is missing"}
	busyReviews = &refusal{status: http.StatusTooManyRequests, reason: "concurrency", again: true,
		text: "too many reviews at work"}
	fullLine = &refusal{status: http.StatusTooManyRequests, reason: "waiting", again: true,
		text: "too many reviews wait"}
	busyBytes = &refusal{status: http.StatusTooManyRequests, reason: "bytes_in_flight", again: true,
		text: "too many bytes of request bodies in memory"}
	unknownPath = &refusal{status: http.StatusNotFound, reason: "path",
		text: "no webhook is served at this path"}
	notPost = &refusal{status: http.StatusMethodNotAllowed, reason: "method",
		text: "webhooks are called with POST"}
	slowBody = &refusal{status: http.StatusRequestTimeout, reason: "slow_body",
		text: "the body did not arrive in time"}
	// evictedBody may be one of a good caller, over a bad line: it may try again.
	evictedBody = &refusal{status: http.StatusServiceUnavailable, reason: "evicted_body", again: true,
		text: "the body arrived more slowly than those of others, for whom there was no room"}
	brokenBody = &refusal{status: http.StatusBadRequest, reason: "broken_body",
		text: "the body could not be read to its end"}
	unauthenticated = &refusal{status: http.StatusUnauthorized, reason: "unauthenticated", ends: true,
		text: "who calls must show a client certificate or a token that is known here"}
	forbidden = &refusal{status: http.StatusForbidden, reason: "forbidden", ends: true,
		text: "who calls may not"}
	// notAsked is a caller of whom nobody could say at the moment whether it may call.
	notAsked = &refusal{status: http.StatusServiceUnavailable, reason: "authentication", again: true,
		text: "it cannot be told at the moment who may call"}
	// panicked carries no Retry-After: what panics once is likely to again, and
	// the failure policy shall decide.
	panicked = &refusal{status: http.StatusInternalServerError, reason: "panic",
		text: "internal error: the webhook's log has the details"}
)

func tooLarge(limit int64) *refusal {
	return &refusal{status: http.StatusRequestEntityTooLarge, reason: "body_size",
		text: fmt.Sprintf("the body exceeds the limit of %d bytes (maxBodyBytes)", limit), structured: true}
}

// asStatus is a metav1.Status with the text, which needs no quoting.
func (r *refusal) asStatus() string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%q,"code":%d}`+"\n", r.text, r.status)
}

// refuse answers with a refusal. While draining, a call that could be repeated
// is sent on at once: there is another replica, and this one will not recover.
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
		_, _ = io.WriteString(a, refused.asStatus()) // who closed the connection has no use for an error
		return
	}
	http.Error(a, refused.text, status)
}
