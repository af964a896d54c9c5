// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// connections knows the open connections and bounds their number.
//
// When one too many comes, the one that has waited longest for a request is
// closed, be it between two requests or before its first. Callers that only hold
// connections grow old and go first; the API server's are used all the time.
type connections struct {
	limit   int
	evicted prometheus.Counter
	// emptied gets a value when the last connection has gone.
	emptied chan struct{}

	mu   sync.Mutex
	open map[net.Conn]*list.Element
	// byAge holds a *connection for each open one. Among those that wait, the
	// first has waited longest.
	byAge *list.List
}

type connection struct {
	conn    net.Conn
	waiting bool
}

func newConnections(limit int, evicted prometheus.Counter) *connections {
	return &connections{
		limit:   limit,
		evicted: evicted,
		emptied: make(chan struct{}, 1),
		open:    map[net.Conn]*list.Element{},
		byAge:   list.New(),
	}
}

// stateChanged is the ConnState hook of http.Server. It sees StateActive when a
// request's header has been read, not when its first byte has come.
func (c *connections) stateChanged(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()

	element, known := c.open[conn]
	switch {
	case state == http.StateNew:
		if len(c.open) >= c.limit && !c.evictOldest() {
			c.evicted.Inc()
			cut(conn)
			return
		}
		c.open[conn] = c.byAge.PushBack(&connection{conn: conn, waiting: true})
	case !known: // evicted, and about to notice
	case state == http.StateActive:
		element.Value.(*connection).waiting = false
	case state == http.StateIdle:
		element.Value.(*connection).waiting = true
		c.byAge.MoveToBack(element)
	default: // closed
		c.forget(element)
	}
}

// evictOldest closes the connection that has waited longest, and reports whether
// there was one.
func (c *connections) evictOldest() bool {
	for element := c.byAge.Front(); element != nil; element = element.Next() {
		if oldest := element.Value.(*connection); oldest.waiting {
			c.evicted.Inc()
			cut(oldest.conn)
			c.forget(element)
			return true
		}
	}
	return false
}

func (c *connections) forget(element *list.Element) {
	delete(c.open, c.byAge.Remove(element).(*connection).conn)
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

// cut closes the connection below TLS: closing TLS would wait until the other
// side takes the notice.
func cut(conn net.Conn) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	_ = conn.Close() // it is gone either way
}
