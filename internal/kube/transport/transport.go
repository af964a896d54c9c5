// SPDX-License-Identifier: Apache-2.0

// Package transport wraps the transports of Kubernetes' clients.
package transport

import "net/http"

// Around returns a round tripper that does instead of what next does, and most often asks next in turn.
// client-go finds next in it: without that, it cannot end a request that takes longer than the
// configuration's timeout, and warns.
func Around(next http.RoundTripper, do func(*http.Request) (*http.Response, error)) http.RoundTripper {
	return around{next, do}
}

type around struct {
	next http.RoundTripper
	do   func(*http.Request) (*http.Response, error)
}

// RoundTrip implements [http.RoundTripper].
func (a around) RoundTrip(r *http.Request) (*http.Response, error) { return a.do(r) }

// WrappedRoundTripper implements RoundTripperWrapper of k8s.io/apimachinery/pkg/util/net.
func (a around) WrappedRoundTripper() http.RoundTripper { return a.next }
