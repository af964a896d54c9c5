// SPDX-License-Identifier: Apache-2.0

package store

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// contact notes when something came from the API server. Its zero value is ready.
type contact struct{ unixMicro atomic.Int64 }

func (c *contact) note() { c.unixMicro.Store(time.Now().UnixMicro()) }

func (c *contact) last() time.Time {
	if at := c.unixMicro.Load(); at != 0 {
		return time.UnixMicro(at)
	}
	return time.Time{}
}

// wrap has a transport note each part of each answer that is good. A watch is one
// answer that goes on for minutes.
func (c *contact) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err == nil && resp.StatusCode == http.StatusOK {
			resp.Body = notingBody{resp.Body, c}
		}
		return resp, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

type notingBody struct {
	io.ReadCloser
	contact *contact
}

func (b notingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.contact.note()
	}
	return n, err
}
