// SPDX-License-Identifier: Apache-2.0

package store

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// contact records when the API server last sent something. The zero value is ready to
// use.
type contact struct{ unixMicro atomic.Int64 }

func (c *contact) note() { c.unixMicro.Store(time.Now().UnixMicro()) }

func (c *contact) last() time.Time {
	if at := c.unixMicro.Load(); at != 0 {
		return time.UnixMicro(at)
	}
	return time.Time{}
}

// wrap makes a transport record each part of each successful response. A watch is one
// response that lasts for minutes.
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
