// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// fakeConn is a connection that records whether it was closed.
type fakeConn struct {
	net.Conn
	from   string
	closed bool
}

func (c *fakeConn) RemoteAddr() net.Addr { return &net.UnixAddr{Name: c.from} }

func (c *fakeConn) Close() error {
	c.closed = true
	return nil
}

func TestEviction(t *testing.T) {
	// A step changes the state of a connection, identified by index.
	type step struct {
		conn  int
		state http.ConnState
	}
	const (
		opened = http.StateNew
		active = http.StateActive
		idle   = http.StateIdle
		closed = http.StateClosed
		review = http.ConnState(100) // an API server sends one
	)
	for name, test := range map[string]struct {
		steps  []step
		closed []int
		open   int
	}{
		"as many as allowed": {[]step{{0, opened}, {1, opened}, {2, opened}}, nil, 3},
		"one too many closes the oldest that has not sent a request": {
			[]step{{0, opened}, {1, opened}, {2, opened}, {3, opened}}, []int{0}, 3},
		"one at work is spared": {
			[]step{{0, opened}, {1, opened}, {2, opened}, {0, active}, {3, opened}}, []int{1}, 3},
		"one that was used since is younger": {
			[]step{{0, opened}, {1, opened}, {2, opened}, {0, active}, {0, idle}, {3, opened}}, []int{1}, 3},
		"those without a review go before one that has had one": {
			[]step{{0, opened}, {0, active}, {0, review}, {0, idle}, {1, opened}, {2, opened}, {2, active}, {2, idle}, {3, opened}, {4, opened}}, []int{1, 2}, 3},
		"where all have had one, the longest idle goes": {
			[]step{
				{0, opened}, {0, active}, {0, review}, {0, idle}, {1, opened}, {1, active}, {1, review}, {1, idle},
				{2, opened}, {2, active}, {2, review}, {2, idle}, {3, opened},
			}, []int{0}, 3},
		"one that is idle when its first review comes counts once": {
			[]step{{0, opened}, {0, review}, {0, active}, {0, idle}, {0, closed}, {1, opened}, {2, opened}, {3, opened}, {4, opened}}, []int{1}, 3},
		"another request is not a review": {
			[]step{{0, opened}, {0, active}, {0, idle}, {1, opened}, {2, opened}, {3, opened}}, []int{0}, 3},
		"where all are at work the new one is closed": {
			[]step{{0, opened}, {1, opened}, {2, opened}, {0, active}, {1, active}, {2, active}, {3, opened}, {3, closed}}, []int{3}, 3},
		"closed ones make room": {
			[]step{{0, opened}, {1, opened}, {2, opened}, {1, closed}, {3, opened}}, nil, 3},
		"one that was closed to make room may still change its state": {
			[]step{{0, opened}, {1, opened}, {2, opened}, {3, opened}, {0, active}, {0, idle}, {0, closed}, {4, opened}}, []int{0, 1}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			evicted := prometheus.NewCounter(prometheus.CounterOpts{})
			table := newConnections(3, evicted, nil)
			conns := make([]fakeConn, 5)
			for _, step := range test.steps {
				if conn := &conns[step.conn]; step.state == review {
					r := httptest.NewRequestWithContext(withConn(t.Context(), conn), http.MethodPost, "/", nil)
					r.Header.Set("User-Agent", apiServerAgent)
					table.carries(r, call{})
				} else {
					table.stateChanged(conn, step.state)
				}
			}
			want := map[int]bool{}
			for _, i := range test.closed {
				want[i] = true
			}
			for i := range conns {
				if conns[i].closed != want[i] {
					t.Errorf("connection %d closed: %t, want %t", i, conns[i].closed, want[i])
				}
			}
			if got := table.count(); got != test.open {
				t.Errorf("%d are open, want %d", got, test.open)
			}
			if got := testutil.ToFloat64(evicted); int(got) != len(test.closed) {
				t.Errorf("counted %v, want %d", got, len(test.closed))
			}
		})
	}
}

func TestAProbeHasItsConnectionAmongThoseOfOthers(t *testing.T) {
	table := newConnections(5, prometheus.NewCounter(prometheus.CounterOpts{}), nil)
	others := make([]fakeConn, 100)
	for i := range others {
		others[i].from = "10.0.0.66"
		table.stateChanged(&others[i], http.StateNew)
		table.stateChanged(&others[i], http.StateActive)
		table.stateChanged(&others[i], http.StateIdle) // answered, and not closed
	}
	probe := fakeConn{from: "10.0.0.1"}
	table.stateChanged(&probe, http.StateNew)
	for range 100 {
		table.stateChanged(&fakeConn{from: "10.0.0.66"}, http.StateNew)
	}
	if probe.closed {
		t.Error("a new connection is closed for those of an address that has more")
	}
}

func TestWhoHasMostConnectionsLosesOne(t *testing.T) {
	table := newConnections(5, prometheus.NewCounter(prometheus.CounterOpts{}), nil)
	server := fakeConn{from: "10.0.0.1"}
	table.stateChanged(&server, http.StateNew)
	table.stateChanged(&server, http.StateActive)
	table.stateChanged(&server, http.StateIdle) // for ever
	others := make([]fakeConn, 100)
	for i := range others {
		others[i].from = "10.0.0.66"
		table.stateChanged(&others[i], http.StateNew)
	}
	if server.closed {
		t.Error("the one connection of an address is closed for those of another")
	}
	for i := range others {
		if closed := i < 96; others[i].closed != closed {
			t.Errorf("connection %d closed: %t, want %t", i, others[i].closed, closed)
		}
	}
	if table.count() != 5 || len(table.peers) != 2 {
		t.Errorf("%d connections of %d addresses", table.count(), len(table.peers))
	}
}

// A body may be slow because this machine is: that of an address with one connection does not go
// before the connections of one with many.
func TestASlowBodyDoesNotGoBeforeTheConnectionsOfACrowd(t *testing.T) {
	options := DefaultOptions()
	options.MaxConnections = 5
	options.derive(1 << 30)
	b := newBodies(&options)
	table := newConnections(5, prometheus.NewCounter(prometheus.CounterOpts{}), b)
	begin := func(conn *fakeConn, age time.Duration) *arrival {
		t.Helper()
		table.stateChanged(conn, http.StateNew)
		table.stateChanged(conn, http.StateActive)
		a := &arrival{request: httptest.NewRequestWithContext(withConn(t.Context(), conn), http.MethodPost, "/", nil)}
		if refused := b.begin(a, 1); refused != nil {
			t.Fatal(refused)
		}
		a.began = time.Now().Add(-age)
		return a
	}
	server := &fakeConn{from: "10.0.0.1"}
	slowest := begin(server, time.Second)
	crowd := make([]fakeConn, 20)
	for i := range crowd[:10] {
		table.stateChanged(&crowd[i], http.StateNew)
	}
	if server.closed {
		t.Error("the body of another address went before idle connections of the crowd")
	}
	for i := range crowd[10:] {
		a := begin(&crowd[10+i], 500*time.Millisecond)
		a.received.Add(int64(100 * i))
	}
	if server.closed || !slowest.listed {
		t.Error("the body of another address went before slow bodies of the crowd")
	}
	if !crowd[10].closed || crowd[19].closed {
		t.Error("of the crowd, the slowest body does not go first")
	}
}

// What waits for the server goes after what waits for its caller.
func TestAConnectionThatWaitsForTheServerGoesLast(t *testing.T) {
	table := newConnections(4, prometheus.NewCounter(prometheus.CounterOpts{}), nil)
	conns := make([]fakeConn, 12)
	open := func(i int) { table.stateChanged(&conns[i], http.StateNew) }
	closed := func(want ...int) {
		t.Helper()
		for i := range conns {
			if conns[i].closed != slices.Contains(want, i) {
				t.Errorf("connection %d closed: %t, want %v", i, conns[i].closed, want)
			}
		}
	}
	for i := range 4 {
		open(i)
	}
	table.queues(&conns[0])
	open(4)
	open(5)
	closed(1, 2)
	table.unqueues(&conns[0]) // now it waits for its caller again, and not for long
	open(6)
	closed(1, 2, 3)
	table.queues(&conns[0])
	table.queues(&conns[4])
	table.queues(&conns[5])
	table.queues(&conns[6])
	open(7) // all wait for the server: the newest makes room
	closed(1, 2, 3, 6)
	other := fakeConn{from: "10.0.0.1"}
	table.stateChanged(&other, http.StateNew)
	table.queues(&other)
	for i := 8; i < 12; i++ {
		open(i)
	}
	if other.closed {
		t.Error("the connection of another address is closed")
	}
	if table.count() != 4 || len(table.peers) != 2 {
		t.Errorf("%d connections of %d addresses", table.count(), len(table.peers))
	}
	for _, p := range table.peers {
		queued, waiting := 0, 0
		for e := p.byAge.Front(); e != nil; e = e.Next() {
			if e.Value.(*connection).queued {
				queued++
			}
			if e.Value.(*connection).waiting {
				waiting++
			}
		}
		if queued != p.queued || waiting != p.waiting[false] {
			t.Errorf("%s: %d queued and %d waiting, counted %d and %d", p.address, queued, waiting, p.queued, p.waiting[false])
		}
	}
}

func TestIdleConnectionsMakeRoom(t *testing.T) {
	h := start(t, func(o *Options) {
		o.MaxConnections = 3
		o.Routes = []Route{{Path: "/echo", Handler: echo}}
	})
	var idle []*rawConn
	for range 3 {
		idle = append(idle, h.dial())
	}
	for range 5 {
		h.post("/echo", "hello").expect(t, 200, "hello")
	}
	idle[0].awaitClosed()
	idle[2].send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello")
	idle[2].reply().expect(t, 200, "hello")
}
