// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// connections tracks the open connections of a port and limits their number.
//
// When the limit is exceeded, another connection is closed: one that sends a body slowly
// or, if there is none, an idle one, which waits for a request, in its handshake or for its
// end. Idle connections on which no API server has sent a review go first, from the address
// with the most of them, and of these the one idle for longest. Callers that only hold
// connections have many and old ones; a probe has one, and needs it for a moment.
type connections struct {
	limit   int
	evicted prometheus.Counter
	// slow drops the body that arrives slowest among those of the given age, and returns
	// its connection for the caller to close. Nil if no bodies are read.
	slow func(time.Duration) net.Conn
	// emptied receives a value when the last connection is closed.
	emptied chan struct{}

	mu   sync.Mutex
	open map[net.Conn]*list.Element
	// peers are the clients with connections, by address.
	peers map[string]*peer
	// now counts how often a connection has become idle.
	now uint64
}

// peer is a client with connections. The list has a *connection for each; of the idle ones,
// the first has been idle longest.
type peer struct {
	address string
	byAge   list.List
	waiting map[bool]int // idle connections by reviews
}

type connection struct {
	conn    net.Conn
	peer    *peer
	waiting bool
	used    bool   // a request was answered on it
	reviews bool   // an API server sends reviews on it
	since   uint64 // when it became idle: greater is later
}

func newConnections(limit int, evicted prometheus.Counter, slow func(time.Duration) net.Conn) *connections {
	return &connections{
		limit:   limit,
		evicted: evicted,
		slow:    slow,
		emptied: make(chan struct{}, 1),
		open:    map[net.Conn]*list.Element{},
		peers:   map[string]*peer{},
	}
}

// apiServerAgent is the prefix of the User-Agent of Kubernetes' webhook clients, which is
// set in k8s.io/apiserver/pkg/util/webhook.
const apiServerAgent = "kube-apiserver"

// connKey is the context key of a request's net.Conn.
type connKey struct{}

func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

func connOf(ctx context.Context) net.Conn {
	conn, _ := ctx.Value(connKey{}).(net.Conn)
	return conn
}

// stateChanged is the ConnState hook of http.Server. It sees StateActive when a
// request's header has been read, not when its first byte has come.
func (c *connections) stateChanged(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()

	element, known := c.open[conn]
	switch {
	case state == http.StateNew:
		if len(c.open) >= c.limit && !c.evict() {
			c.evicted.Inc()
			cut(conn)
			return
		}
		c.add(conn)
	case !known: // already evicted
	case state == http.StateActive:
		element.Value.(*connection).set(false)
	case state == http.StateIdle:
		element.Value.(*connection).used = true
		c.waits(element)
	default: // closed
		c.forget(element)
	}
}

// waitsFor marks the connection of a request as idle, so that it may be closed, while its
// caller is not authenticated and after the request was refused: net/http keeps such a
// connection for a while if the caller has not sent its whole body.
func (c *connections) waitsFor(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, known := c.open[connOf(ctx)]; known {
		c.waits(element)
	}
}

// works undoes waitsFor.
func (c *connections) works(ctx context.Context) { c.stateChanged(connOf(ctx), http.StateActive) }

// carries marks the connection of a request as one on which an API server sends reviews.
func (c *connections) carries(r *http.Request) {
	if !strings.HasPrefix(r.UserAgent(), apiServerAgent) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, known := c.open[connOf(r.Context())]; known {
		carrier := element.Value.(*connection)
		waiting := carrier.waiting
		carrier.set(false)
		carrier.reviews = true
		carrier.set(waiting)
	}
}

// closeOthers closes idle connections on which no API server has sent a review.
func (c *connections) closeOthers() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn, element := range c.open {
		if idle := element.Value.(*connection); idle.waiting && idle.used && !idle.reviews {
			cut(conn)
			c.forget(element)
		}
	}
}

func (c *connections) add(conn net.Conn) {
	address := addressOf(conn)
	p := c.peers[address]
	if p == nil {
		p = &peer{address: address, waiting: map[bool]int{}}
		c.peers[address] = p
	}
	c.open[conn] = p.byAge.PushBack(&connection{conn: conn, peer: p})
	c.waits(c.open[conn])
}

// waits marks a connection as idle.
func (c *connections) waits(element *list.Element) {
	waiting := element.Value.(*connection)
	waiting.set(true)
	c.now++
	waiting.since = c.now
	waiting.peer.byAge.MoveToBack(element)
}

// set makes a connection idle, or not.
func (c *connection) set(waiting bool) {
	if c.waiting {
		c.peer.waiting[c.reviews]--
	}
	if c.waiting = waiting; waiting {
		c.peer.waiting[c.reviews]++
	}
}

// evict closes a connection, and reports whether there was one to close.
func (c *connections) evict() bool {
	return c.evictSlow(youngBody) || c.evictWaiting() || c.evictSlow(0)
}

func (c *connections) evictSlow(age time.Duration) bool {
	if c.slow == nil {
		return false
	}
	conn := c.slow(age)
	if conn == nil {
		return false
	}
	element, known := c.open[conn]
	if known {
		c.evicted.Inc()
		cut(conn)
		c.forget(element)
	}
	return known
}

func (c *connections) evictWaiting() bool {
	oldest := c.oldestWaiting(false)
	if oldest == nil {
		oldest = c.oldestWaiting(true)
	}
	if oldest == nil {
		return false
	}
	c.evicted.Inc()
	cut(oldest.Value.(*connection).conn)
	c.forget(oldest)
	return true
}

// oldestWaiting returns the idle connection, with reviews or without as given, to evict: the
// one idle for longest from the address with the most of them, or nil if there is none.
func (c *connections) oldestWaiting(reviews bool) *list.Element {
	var oldest *list.Element
	most := 0
	for _, p := range c.peers {
		n := p.waiting[reviews]
		if n == 0 || n < most {
			continue
		}
		first := p.byAge.Front()
		for waiting := first.Value.(*connection); !waiting.waiting || waiting.reviews != reviews; waiting = first.Value.(*connection) {
			first = first.Next()
		}
		if n > most || first.Value.(*connection).since < oldest.Value.(*connection).since {
			oldest, most = first, n
		}
	}
	return oldest
}

func (c *connections) forget(element *list.Element) {
	gone := element.Value.(*connection)
	gone.set(false)
	gone.peer.byAge.Remove(element)
	if gone.peer.byAge.Len() == 0 {
		delete(c.peers, gone.peer.address)
	}
	delete(c.open, gone.conn)
	if len(c.open) == 0 {
		select {
		case c.emptied <- struct{}{}:
		default:
		}
	}
}

func (c *connections) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

// addressOf is the remote address of a connection, without the port.
func addressOf(conn net.Conn) string {
	address := conn.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// cut closes the connection below TLS: closing TLS would wait for the peer to read the
// alert.
func cut(conn net.Conn) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	_ = conn.Close() // it is closed either way
}
