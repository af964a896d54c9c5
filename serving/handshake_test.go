// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// kube-apiserver's client gives a handshake 10 s.
const clientHandshakeTime = 10 * time.Second

// A client of TLS 1.3 regards a handshake as done before the server does, and may send a call at any time from then on.
func TestACallIsNotLostBecauseItsHandshakeIsSlow(t *testing.T) {
	for name, test := range map[string]struct {
		hello, finished time.Duration // after which the caller sends the parts of its handshake
		closed          bool
	}{
		"a late beginning":             {hello: clientHandshakeTime - time.Second},
		"a late end":                   {finished: clientHandshakeTime - time.Second},
		"both":                         {hello: clientHandshakeTime - time.Second, finished: clientHandshakeTime - time.Second},
		"a beginning that is too late": {hello: minHandshakeTime + 2*lastLook, closed: true},
		"an end that is too late":      {finished: minHandshakeTime + 2*lastLook, closed: true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(*Options) {}, func(t *testing.T, h *harness) {
				raw, err := h.dialer(t.Context(), "tcp", "")
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = raw.Close() }()
				time.Sleep(test.hello)
				held := &holdingConn{Conn: raw}
				if err := callOn(t, h, held, func() {
					time.Sleep(test.finished)
					held.free = true
				}); (err != nil) != test.closed {
					t.Errorf("the call ended with %v", err)
				}
			})
		})
	}
}

// callOn sends a call on a connection, between says when after the client's handshake.
func callOn(t *testing.T, h *harness, raw net.Conn, between func()) error {
	t.Helper()
	config := h.tls.Clone()
	config.ServerName, config.MinVersion = "127.0.0.1", tls.VersionTLS13
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(t.Context()); err != nil {
		return err
	}
	between()
	if _, err := io.WriteString(conn, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"); err != nil {
		return err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return errors.Join(err, response.Body.Close())
}

func TestTheTimeForAHandshakeIsNotSpentInTheServersQueue(t *testing.T) {
	var calls atomic.Int32
	turns := max(1, runtime.GOMAXPROCS(0)/2)
	slow := func(o *Options) {
		get := o.GetCertificate
		o.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if int(calls.Add(1)) <= turns { // they have all turns
				time.Sleep(3 * minHandshakeTime)
			}
			return get(hello)
		}
	}
	bubble(t, slow, func(t *testing.T, h *harness) {
		call := func() error {
			raw, err := h.dialer(t.Context(), "tcp", "")
			if err != nil {
				return err
			}
			defer func() { _ = raw.Close() }()
			return callOn(t, h, raw, func() {})
		}
		first := make(chan error, turns)
		for range turns {
			go func() { first <- call() }()
		}
		synctest.Wait()
		if err := call(); err != nil {
			t.Errorf("a call that waited ended with %v", err)
		}
		for range turns {
			if err := <-first; err != nil {
				t.Errorf("a call that had a turn ended with %v", err)
			}
		}
	})
}

// A server that has been busy reads what has arrived.
func TestWhatArrivedBeforeTheEndOfAHandshakesTimeIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer func() { _ = client.Close() }()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		conn := &freshConn{Conn: server, listener: &freshListener{handshake: minHandshakeTime}, closed: make(chan struct{})}
		_ = conn.SetReadDeadline(time.Now().Add(time.Second)) // of net/http
		go func() {
			_, _ = client.Write([]byte{handshakeRecord, 3, 1, 0, 2, 'o', 'k'})
			<-ctx.Done()
		}()
		time.Sleep(minHandshakeTime + time.Hour)
		buffer := make([]byte, 100)
		got, err := io.ReadAtLeast(conn, buffer, 7)
		if got != 7 || err != nil {
			t.Errorf("%d bytes, %v", got, err)
		}
		began := time.Now()
		if n, err := conn.Read(buffer); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) > lastLook {
			t.Errorf("%d bytes, %v, after %s: a caller that is slow has no more time", n, err, time.Since(began))
		}
	})
}
