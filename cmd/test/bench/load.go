// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// connections is how many callers send at one time, each on a connection of its
// own, each waiting for an answer before it sends again.
const connections = 4

// A loader sends reviews to one server the way kube-apiserver does: through
// net/http's transport, with the header fields that it sets, on connections
// that stay open.
type loader struct {
	url     string
	callers [connections]*caller
	dials   atomic.Int64
	reviews int // that were answered
}

// A caller has one connection.
type caller struct {
	transport *http.Transport
	buffer    bytes.Buffer
	latencies []time.Duration
}

// reviewHeader is what kube-apiserver sends. It is shared and never written to.
var reviewHeader = http.Header{
	"Accept":       {"application/json, */*"},
	"Content-Type": {"application/json"},
	"User-Agent":   {"kube-apiserver-admission"},
}

func newLoader(url string, config *tls.Config) *loader {
	l := &loader{url: url}
	dialer := &tls.Dialer{Config: config}
	for i := range l.callers {
		l.callers[i] = &caller{transport: &http.Transport{
			DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				l.dials.Add(1)
				return dialer.DialContext(ctx, network, address)
			},
			MaxConnsPerHost: 1,
		}}
	}
	return l
}

func (l *loader) close() {
	for _, c := range l.callers {
		c.transport.CloseIdleConnections()
	}
}

// A sample is what came of a window of load.
type sample struct {
	reviews   int
	elapsed   time.Duration
	latencies []time.Duration // in no order
}

// run sends the review over all connections until the window is over and every
// review is answered. It fails at the first answer that is not 200 with a body
// of answerLen bytes, and if a connection did not last.
func (l *loader) run(ctx context.Context, path string, body []byte, answerLen int, window time.Duration) (sample, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	started := time.Now()
	end := started.Add(window)
	var group sync.WaitGroup
	for _, c := range l.callers {
		c.latencies = c.latencies[:0]
		group.Go(func() {
			for first := true; first || time.Now().Before(end); first = false {
				n, err := c.post(ctx, l.url+path, body)
				if err == nil && n != answerLen {
					err = fmt.Errorf("an answer of %d bytes where %d were right", n, answerLen)
				}
				if err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	group.Wait()
	s := sample{elapsed: time.Since(started)}
	if err := context.Cause(ctx); err != nil {
		return s, err
	}
	for _, c := range l.callers {
		s.latencies = append(s.latencies, c.latencies...)
	}
	s.reviews = len(s.latencies)
	// The transport itself gives a connection up whose answer is there 50 ms before it has
	// noticed that the request is written, which happens where the machine is busy.
	l.reviews += s.reviews
	if dials := l.dials.Load(); dials > int64(connections+l.reviews/100) {
		return s, fmt.Errorf("the server closes connections: %d were opened for %d reviews, %d are enough", dials, l.reviews, connections)
	}
	return s, nil
}

// post sends one review and returns the length of the answer, which is then in
// the buffer.
func (c *caller) post(ctx context.Context, url string, body []byte) (int, error) {
	started := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"?timeout=10s", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header = reviewHeader
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	c.buffer.Reset()
	_, err = c.buffer.ReadFrom(resp.Body)
	_ = resp.Body.Close() // read to its end
	if err != nil {
		return 0, err
	}
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(&c.buffer, 1<<10))
		return 0, fmt.Errorf("%s: %s", resp.Status, bytes.TrimSpace(text))
	}
	c.latencies = append(c.latencies, time.Since(started))
	return c.buffer.Len(), nil
}

// ask sends one review, outside of any measurement, and returns the answer.
func (l *loader) ask(ctx context.Context, path string, body []byte) ([]byte, error) {
	c := l.callers[0]
	if _, err := c.post(ctx, l.url+path, body); err != nil {
		return nil, err
	}
	return bytes.Clone(c.buffer.Bytes()), nil
}
