// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"cmp"
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// connections tracks the open connections of a port and limits their number.
//
// When the limit is exceeded, another connection is closed: one that sends a body slowly, or
// an idle one, which waits for a request, in its handshake or for its end. Connections on which no
// API server has sent a review go first, from the address with the most of these, and of these the one
// with the slowest body or, if there is none, the one idle for longest. Callers that only hold
// connections have many and old ones; a probe has one, and needs it for a moment.
type connections struct {
	limit   int
	evicted prometheus.Counter
	bodies  *bodies // that arrive on them; nil if none are read
	// emptied receives a value when the last connection is closed.
	emptied chan struct{}

	mu   sync.Mutex
	open map[net.Conn]*list.Element // by the connection below TLS
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
	queued  int          // connections that wait for the server in their handshake
}

type connection struct {
	conn    net.Conn
	peer    *peer
	waiting bool
	queued  bool   // it waits for its turn in the handshake
	used    bool   // a request was answered on it
	reviews bool   // an API server sends reviews on it
	since   uint64 // when it became idle: greater is later
	call    call   // the latest; none while it is idle
}

func newConnections(limit int, evicted prometheus.Counter, bodies *bodies) *connections {
	return &connections{
		limit:   limit,
		evicted: evicted,
		bodies:  bodies,
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

	element, known := c.open[below(conn)]
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
	if element, known := c.open[below(connOf(ctx))]; known {
		c.waits(element)
	}
}

// queues marks a connection, below TLS, as one that waits for the server. What waits for its caller is
// closed before it.
func (c *connections) queues(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, known := c.open[conn]; known {
		queued := element.Value.(*connection)
		queued.set(false)
		queued.setQueued(true)
	}
}

// unqueues undoes queues.
func (c *connections) unqueues(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, known := c.open[conn]; known && element.Value.(*connection).queued {
		element.Value.(*connection).setQueued(false)
		c.waits(element)
	}
}

// works undoes waitsFor.
func (c *connections) works(ctx context.Context) { c.stateChanged(connOf(ctx), http.StateActive) }

// carries notes the call of a request, and marks its connection as one on which an API server sends
// reviews.
func (c *connections) carries(r *http.Request, is call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, known := c.open[below(connOf(r.Context()))]; known {
		carrier := element.Value.(*connection)
		carrier.call = is
		if !strings.HasPrefix(r.UserAgent(), apiServerAgent) {
			return
		}
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
	for _, element := range c.open {
		if idle := element.Value.(*connection); idle.waiting && idle.used && !idle.reviews {
			cut(idle.conn)
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
	element := p.byAge.PushBack(&connection{conn: conn, peer: p})
	c.open[below(conn)] = element
	c.waits(element)
}

// waits marks a connection as idle.
func (c *connections) waits(element *list.Element) {
	waiting := element.Value.(*connection)
	waiting.set(true)
	waiting.call = call{}
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

func (c *connection) setQueued(queued bool) {
	if c.queued {
		c.peer.queued--
	}
	if c.queued = queued; queued {
		c.peer.queued++
	}
}

// evict closes a connection, and reports whether there was one to close.
func (c *connections) evict() bool {
	slow := c.slow(youngBody)
	return c.evictOf(false, slow) || c.evictOf(true, slow) || c.evictYoung()
}

// slow returns the slow bodies of each client, by whether an API server sends reviews on the connection.
func (c *connections) slow(young time.Duration) map[bool]map[*peer][]*arrival {
	if c.bodies == nil {
		return nil
	}
	out := map[bool]map[*peer][]*arrival{false: {}, true: {}}
	for _, a := range c.bodies.slow(young) {
		if element, known := c.open[below(connOf(a.request.Context()))]; known {
			sender := element.Value.(*connection)
			out[sender.reviews][sender.peer] = append(out[sender.reviews][sender.peer], a)
		}
	}
	return out
}

// evictOf closes a connection, with reviews or without as given, of the client with the most that are
// idle, slow or queued. Queued ones are the last, and of these the newest.
func (c *connections) evictOf(reviews bool, slow map[bool]map[*peer][]*arrival) bool {
	var largest *peer
	var oldest *list.Element
	most := 0
	for _, p := range c.peers {
		n := p.waiting[reviews] + len(slow[reviews][p])
		if !reviews {
			n += p.queued
		}
		if n == 0 || n < most {
			continue
		}
		first := p.oldestWaiting(reviews)
		if n > most || oldest != nil && first != nil && first.Value.(*connection).since < oldest.Value.(*connection).since {
			largest, oldest, most = p, first, n
		}
	}
	switch {
	case largest == nil:
		return false
	case c.evictSlowest(slow[reviews][largest]):
		return true
	case oldest == nil && !reviews:
		oldest = largest.newestQueued()
	}
	if oldest == nil {
		return false
	}
	c.evicted.Inc()
	cut(oldest.Value.(*connection).conn)
	c.forget(oldest)
	return true
}

// evictYoung closes the connection with the slowest body, however young.
func (c *connections) evictYoung() bool {
	return c.bodies != nil && c.evictSlowest(c.bodies.slow(0))
}

func (c *connections) evictSlowest(slow []*arrival) bool {
	if len(slow) == 0 {
		return false
	}
	now := time.Now()
	slowest := slices.MinFunc(slow, func(a, b *arrival) int { return cmp.Compare(a.rate(now), b.rate(now)) })
	conn := c.bodies.cutConnection(slowest)
	element, known := c.open[below(conn)]
	if !known {
		return false
	}
	c.evicted.Inc()
	cut(conn)
	c.forget(element)
	return true
}

// oldestWaiting returns the connection, with reviews or without as given, that is idle for longest;
// nil if none is idle.
func (p *peer) oldestWaiting(reviews bool) *list.Element {
	if p.waiting[reviews] == 0 {
		return nil
	}
	first := p.byAge.Front()
	for waiting := first.Value.(*connection); !waiting.waiting || waiting.reviews != reviews; waiting = first.Value.(*connection) {
		first = first.Next()
	}
	return first
}

func (p *peer) newestQueued() *list.Element {
	for last := p.byAge.Back(); last != nil; last = last.Prev() {
		if last.Value.(*connection).queued {
			return last
		}
	}
	return nil
}

func (c *connections) forget(element *list.Element) {
	gone := element.Value.(*connection)
	gone.set(false)
	gone.setQueued(false)
	gone.peer.byAge.Remove(element)
	if gone.peer.byAge.Len() == 0 {
		delete(c.peers, gone.peer.address)
	}
	delete(c.open, below(gone.conn))
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
func cut(conn net.Conn) { _ = below(conn).Close() } // it is closed either way

// below is the connection below TLS.
func below(conn net.Conn) net.Conn {
	if secure, ok := conn.(*tls.Conn); ok {
		return secure.NetConn()
	}
	return conn
}
