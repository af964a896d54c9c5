// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/sallyport-io/sallyport/serving/internal/turns"
)

// freshListener accepts connections that may be idle before their first request as long as
// between two requests.
//
// net/http allows ReadHeaderTimeout for the header of the first request on a connection,
// from the end of the handshake. But the client may have no request for it: Go's transport,
// which kube-apiserver uses, dials when all connections are in use, takes the new one or
// one that becomes free, whichever comes first, and keeps the other for later. Closing that
// one after a few seconds races with a call on it, which kube-apiserver does not retry.
//
// net/http closes a connection whose handshake takes longer than ReadHeaderTimeout, however much of that is the server's own
// delay. In TLS 1.3 the client regards the handshake as done when it has sent its last part: it may have the connection in its
// pool, or a call on it, which is lost then. So a handshake has more time than the client gives it, each part that the server
// sends starts that time anew, and what has arrived by its end is read.
//
// It also makes addresses take turns in their handshakes.
type freshListener struct {
	net.Listener
	idle, header time.Duration
	handshake    time.Duration // for each part of the caller
	turns        *turns.Turns  // nil for no limit
	// queues and unqueues are called when a connection waits for its turn, and when that is over.
	queues, unqueues func(net.Conn)
}

func (l *freshListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &freshConn{Conn: conn, listener: l, closed: make(chan struct{})}, nil
}

// freshConn is a connection below TLS. It derives its stage from the calls of net/http: a
// read deadline for the handshake, none after it, and then one for the first header, which
// it replaces with its own.
type freshConn struct {
	net.Conn
	listener  *freshListener
	closed    chan struct{}
	closeOnce sync.Once

	mu     sync.Mutex
	turn   bool // it has one
	late   bool // the time for the handshake is over, apart from lastLook
	stage  stage
	since  time.Time     // it waits for its first byte
	waited time.Duration // for that

	record [5]byte // the header of a TLS record (RFC 8446, section 5.1)
	have   int     // how much of that was read
	left   int     // of the record
}

// handshakeRecord is the type of TLS records with handshake messages that are not encrypted.
const handshakeRecord = 22

const (
	// minHandshakeTime is longer than the 10 s that kube-apiserver's client gives a handshake
	// (k8s.io/client-go/transport, TLSHandshakeTimeout).
	minHandshakeTime = 15 * time.Second
	// lastLook is the time to read what arrived before the end of that time.
	lastLook = time.Second
)

type stage int

const (
	handshaking   stage = iota
	handshaken          // the next deadline is that of the first header
	awaitingFirst       // byte of the first request
	begun               // the next deadline is that of the first request, less what was waited
	used
)

// Close ends its wait for a turn.
func (c *freshConn) Close() error {
	c.closeOnce.Do(func() { close(c.closed) })
	c.giveTurn()
	return c.Conn.Close()
}

// takeTurn waits for a turn in the handshake, with what the caller has sent of it.
func (c *freshConn) takeTurn() error {
	if c.listener.turns == nil {
		return nil
	}
	c.listener.queues(c)
	if !c.listener.turns.Take(addressOf(c), c.closed) {
		return net.ErrClosed
	}
	c.mu.Lock()
	c.turn = true
	c.mu.Unlock()
	select {
	case <-c.closed: // perhaps before it had its turn
		c.giveTurn()
		return net.ErrClosed
	default:
		return nil
	}
}

// Write ends its turn first: a caller may not read what the server has computed. In the handshake, the caller then has its
// time anew: it may have waited for the server.
func (c *freshConn) Write(p []byte) (int, error) {
	c.giveTurn()
	c.mu.Lock()
	if c.stage == handshaking {
		c.late = false
		_ = c.Conn.SetDeadline(time.Now().Add(c.listener.handshake)) // a closed connection fails below
	}
	c.mu.Unlock()
	return c.Conn.Write(p)
}

func (c *freshConn) giveTurn() {
	c.mu.Lock()
	had := c.turn
	c.turn = false
	c.mu.Unlock()
	if had {
		c.listener.turns.Give()
		c.listener.unqueues(c)
	}
}

func (c *freshConn) SetReadDeadline(t time.Time) error {
	if t.IsZero() {
		c.giveTurn() // the handshake is over
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.stage == handshaking && !t.IsZero():
		t = time.Now().Add(c.listener.handshake)
	case c.stage == handshaking:
		c.stage = handshaken
	case c.stage == handshaken && !t.IsZero():
		c.stage, c.since = awaitingFirst, time.Now()
		t = c.since.Add(c.listener.idle)
	case c.stage == awaitingFirst: // the header had come with the end of the handshake
		c.stage = used
	case c.stage == begun:
		c.stage = used
		if !t.IsZero() {
			t = t.Add(c.waited)
		}
	}
	return c.Conn.SetReadDeadline(t)
}

func (c *freshConn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stage == handshaking && !t.IsZero() {
		t = time.Now().Add(c.listener.handshake)
	}
	return c.Conn.SetWriteDeadline(t)
}

func (c *freshConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	shaking := c.stage == handshaking
	c.mu.Unlock()
	if shaking {
		c.giveTurn() // what it computed has been sent
		n, err := c.readRecord(p)
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && c.isLate() {
			return c.readRecord(p)
		}
		return n, err
	}
	n, err := c.Conn.Read(p)
	if n == 0 {
		return n, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stage == awaitingFirst {
		c.stage, c.waited = begun, time.Since(c.since)
		if err := c.Conn.SetReadDeadline(time.Now().Add(c.listener.header)); err != nil {
			return n, err
		}
	}
	return n, err
}

// isLate gives the handshake a last look, once.
func (c *freshConn) isLate() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.late {
		return false
	}
	c.late = true
	return c.Conn.SetReadDeadline(time.Now().Add(lastLook)) == nil
}

// readRecord does not read past the end of a TLS record. Otherwise the first bytes of a
// request that arrive with the end of the handshake would be read with it, and the
// connection would seem to wait for them still.
func (c *freshConn) readRecord(p []byte) (int, error) {
	if c.left > 0 {
		n, err := c.Conn.Read(p[:min(len(p), c.left)])
		c.left -= n
		// Only records of this type make the server compute.
		if err == nil && c.left == 0 && c.record[0] == handshakeRecord {
			err = c.takeTurn()
		}
		return n, err
	}
	n, err := c.Conn.Read(p[:min(len(p), len(c.record)-c.have)])
	c.have += copy(c.record[c.have:], p[:n])
	if c.have == len(c.record) {
		c.have, c.left = 0, int(c.record[3])<<8|int(c.record[4])
	}
	if err == nil && c.have == 0 && c.record[0] >= 'A' && n < len(p) {
		// Plain HTTP instead of TLS: net/http responds and closes the connection. Unread
		// data would turn that into a reset, and lose the response.
		more, err := c.Conn.Read(p[n:])
		return n + more, err
	}
	return n, err
}
