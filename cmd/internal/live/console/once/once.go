// SPDX-License-Identifier: Apache-2.0

// Package once sends each request of a page once, although several of its parts need the answer.
package once

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/internal/kube/transport"
)

// maxKept limits the answers that a page keeps while it is read, in bytes.
const maxKept = 8 << 20

// answers are those of one page, and so of one user.
type answers struct {
	mutex sync.Mutex
	bytes int
	known map[string]*sharedAnswer // by what was asked
}

// sharedAnswer is an answer, when it is there.
type sharedAnswer struct {
	there    chan struct{}
	response *http.Response // nil if it is not kept
	body     []byte
}

// Sharing returns a configuration of which all clients together send each request once.
func Sharing(config *rest.Config) *rest.Config {
	all := &answers{known: map[string]*sharedAnswer{}}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport.Around(next, func(r *http.Request) (*http.Response, error) { return all.get(next, r) })
	})
	return config
}

// get sends a request, unless its answer is known.
func (o *answers) get(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet || strings.HasSuffix(r.URL.Path, "/pods") || r.URL.Path == "/metrics" { // they are large, and read while they arrive
		return next.RoundTrip(r)
	}
	asked := *r.URL
	query := asked.Query()
	query.Del("timeout") // doctor has one
	asked.RawQuery = query.Encode()
	key := fmt.Sprint(&asked, r.Header) // which has the user
	o.mutex.Lock()
	one := o.known[key]
	first := one == nil
	if first {
		one = &sharedAnswer{there: make(chan struct{})}
		o.known[key] = one
	}
	o.mutex.Unlock()
	if first {
		defer close(one.there)
		return o.ask(next, r, one)
	}
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case <-one.there:
	}
	if one.response == nil {
		return next.RoundTrip(r)
	}
	return one.copied(r), nil
}

// ask sends a request, and keeps the answer if there is room.
func (o *answers) ask(next http.RoundTripper, r *http.Request, one *sharedAnswer) (*http.Response, error) {
	response, err := next.RoundTrip(r)
	if err != nil || response.StatusCode != http.StatusOK { // which may be tried again
		return response, err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxKept))
	if err != nil {
		_ = response.Body.Close() // the first error says why
		return nil, err
	}
	o.mutex.Lock()
	fits := len(body)+o.bytes < maxKept
	if fits {
		o.bytes += len(body)
	}
	o.mutex.Unlock()
	if !fits {
		response.Body = &struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(body), response.Body), response.Body}
		return response, nil
	}
	one.body, one.response = body, response
	return one.copied(r), response.Body.Close()
}

// copied is the answer for one of those who ask.
func (a *sharedAnswer) copied(r *http.Request) *http.Response {
	out := *a.response
	out.Header, out.Request, out.Body = a.response.Header.Clone(), r, io.NopCloser(bytes.NewReader(a.body))
	return &out
}
