// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is an in-memory listener for fake clocks.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	// onClose is called just before it is closed.
	onClose func()
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() {
		if p.onClose != nil {
			p.onClose()
		}
		close(p.closed)
	})
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return hasty{client}, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// hasty is the client's end of a pipe. TLS limits only the time of its final alert. A
// pipe has no buffer, so two ends that close at once would wait for each other that
// long. This one does not wait.
type hasty struct{ net.Conn }

func (c hasty) SetWriteDeadline(time.Time) error { return c.Conn.SetWriteDeadline(time.Now()) }

// bubble runs test against a server with the default times, on a fake clock.
func bubble(t *testing.T, change func(*Options), test func(t *testing.T, h *harness)) {
	bubbleBehind(t, func(l net.Listener) net.Listener { return l }, change, test)
}

// bubbleBehind is bubble with a wrapper around the server's listener.
func bubbleBehind(t *testing.T, between func(net.Listener) net.Listener, change func(*Options), test func(t *testing.T, h *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		options, pool := testOptions(t)
		options.MetricsBindAddress = ""
		options.DrainMin, options.DrainTimeout = DefaultOptions().DrainMin, DefaultOptions().DrainTimeout
		options.Routes = []Route{{Path: "/echo", Handler: echo}}
		change(&options)
		server, err := New(options)
		if err != nil {
			t.Fatal(err)
		}
		listener := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		server.listener = between(listener)

		transport := &http.Transport{
			DialContext:       listener.dial,
			TLSClientConfig:   &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"},
			ForceAttemptHTTP2: options.HTTP2,
		}
		ctx, stop := context.WithCancel(t.Context())
		h := &harness{Server: server, t: t, agent: apiServerAgent + "-admission", client: &http.Client{Transport: transport}, tls: transport.TLSClientConfig,
			dialer: listener.dial, stop: stop, ended: make(chan error, 1)}
		go func() { h.ended <- server.Run(ctx) }()
		synctest.Wait()
		test(t, h)
		for _, conn := range h.dialled { // the server would wait until they take the end of TLS
			_ = conn.Close()
		}
		stop()
		transport.CloseIdleConnections()
		server.close()
		time.Sleep(time.Second) // after an early answer net/http keeps the connection half open for 500 ms
		synctest.Wait()
	})
}
