// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// smallBody is what nearly all reviews stay below.
	smallBody = 64 << 10
	// youngBody is how old a body is before it can be said to be slow: an API server
	// sends it in one go.
	youngBody = 100 * time.Millisecond
	// rateInterval is how often rates are looked at.
	rateInterval = time.Second
)

// bodies bound what request bodies take in memory: what has arrived and the buffer for
// what comes next, whatever was announced. A quarter is kept for small ones.
//
// When there is no room, the body that arrives slowest is cut, and not the newcomer
// refused: who only wants to hold memory is slower than who wants an answer.
type bodies struct {
	limit int64 // bytes of all
	large int64 // bytes of those that are not small
	most  int   // that arrive at one time
	// rate is how many bytes have to arrive in each second after grace.
	rate  int64
	grace time.Duration

	mu              sync.Mutex
	held, heldLarge int64
	first, last     *arrival // of those that arrive, the oldest first
	arriving        int
	watched         bool // a timer will look at the rates
}

// An arrival is the body of a request: while it arrives one of the list, and then what
// it takes in memory.
type arrival struct {
	w       http.ResponseWriter
	request *http.Request
	began   time.Time
	// received is how much of it has arrived.
	received atomic.Int64

	// The mutex of bodies guards these.
	held       int64
	cut        *refusal // why it was cut; nil if it was not
	listed     bool
	next, prev *arrival
}

func newBodies(o *Options) *bodies {
	return &bodies{
		limit: o.MaxBytesInFlight, large: max(o.MaxBytesInFlight/4*3, o.MaxBodyBytes+1), most: o.MaxConnections,
		rate: o.MinBodyRate, grace: o.ReadHeaderTimeout,
	}
}

// begin takes a body into the list, with so many bytes for it.
func (b *bodies) begin(a *arrival, size int64) *refusal {
	a.began = time.Now()
	b.mu.Lock()
	var cut []*arrival
	refused := busyBytes
	if b.arriving >= b.most { // HTTP/2 has many requests on a connection
		if slowest := b.slowest(youngBody, 0); slowest != nil {
			b.cutBody(slowest, evictedBody)
			cut = append(cut, slowest)
		}
	}
	if b.arriving < b.most {
		b.list(a)
		refused, cut = b.room(a, size, cut)
	}
	b.mu.Unlock()
	wake(cut)
	return refused
}

// grow takes so many bytes more for a body.
func (b *bodies) grow(a *arrival, n int64) *refusal {
	b.mu.Lock()
	refused, cut := b.room(a, n, nil)
	b.mu.Unlock()
	wake(cut)
	return refused
}

// room makes room for so many bytes more, and adds the bodies that it has cut for that.
func (b *bodies) room(a *arrival, n int64, cut []*arrival) (*refusal, []*arrival) {
	for a.cut == nil {
		crowded, above := b.crowded(a, n)
		if !crowded {
			b.hold(a, n)
			return nil, cut
		}
		slowest := b.slowest(youngBody, above)
		if slowest == nil || slowest == a {
			return busyBytes, cut
		}
		b.cutBody(slowest, evictedBody)
		cut = append(cut, slowest)
	}
	return a.cut, cut
}

// crowded tells whether there is no room for so many bytes more. Then there is some when
// bodies go that take so many bytes.
func (b *bodies) crowded(a *arrival, n int64) (crowded bool, above int64) {
	if size := a.held + n; size > smallBody {
		large := b.heldLarge + n
		if a.held <= smallBody {
			large += a.held
		}
		if large > b.large {
			return true, smallBody + 1
		}
	}
	return b.held+n > b.limit, 0
}

// hold accounts for so many bytes more, or less.
func (b *bodies) hold(a *arrival, n int64) {
	if a.held > smallBody {
		b.heldLarge -= a.held
	}
	a.held += n
	b.held += n
	if a.held > smallBody {
		b.heldLarge += a.held
	}
}

// slowest is, of the bodies that arrive and take so many bytes, the one with the
// fewest bytes a second; nil if there is none of that age.
func (b *bodies) slowest(young time.Duration, above int64) *arrival {
	now := time.Now()
	var slowest *arrival
	var least float64
	for a := b.first; a != nil; a = a.next {
		age := now.Sub(a.began)
		if age < young || a.held < above {
			continue
		}
		if rate := float64(a.received.Load()) / (age + time.Millisecond).Seconds(); slowest == nil || rate < least {
			slowest, least = a, rate
		}
	}
	return slowest
}

// cutBody takes a body out of the account. Its reader has to be woken.
func (b *bodies) cutBody(a *arrival, why *refusal) {
	a.cut = why
	b.unlist(a)
	b.hold(a, -a.held)
}

func (b *bodies) list(a *arrival) {
	a.listed, a.prev = true, b.last
	if b.last != nil {
		b.last.next = a
	} else {
		b.first = a
	}
	b.last = a
	b.arriving++
	if !b.watched {
		b.watched = true
		time.AfterFunc(rateInterval, b.watch)
	}
}

func (b *bodies) unlist(a *arrival) {
	if !a.listed {
		return
	}
	if a.prev != nil {
		a.prev.next = a.next
	} else {
		b.first = a.next
	}
	if a.next != nil {
		a.next.prev = a.prev
	} else {
		b.last = a.prev
	}
	a.listed, a.next, a.prev = false, nil, nil
	b.arriving--
}

// arrived ends the arrival of a body: the reason is not nil if it was cut.
func (b *bodies) arrived(a *arrival) *refusal {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unlist(a)
	return a.cut
}

// give gives back what a body takes.
func (b *bodies) give(a *arrival) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unlist(a)
	b.hold(a, -a.held)
}

// longPast is a deadline that is over, whatever freshConn adds to it.
var longPast = time.Unix(1, 0)

// wake ends the reads that wait for more of bodies that were cut. It is called without
// the lock.
func wake(cut []*arrival) {
	for _, a := range cut {
		if a.w != nil {
			_ = http.NewResponseController(a.w).SetReadDeadline(longPast) // who cannot finds out with the next bytes
		}
	}
}

// watch cuts the bodies that are too slow, now and for as long as any arrive.
func (b *bodies) watch() {
	now := time.Now()
	var slow []*arrival
	b.mu.Lock()
	for a := b.first; a != nil; {
		next := a.next
		due := float64(b.rate) * (now.Sub(a.began) - b.grace).Seconds()
		if float64(a.received.Load()) < due {
			b.cutBody(a, slowBody)
			slow = append(slow, a)
		}
		a = next
	}
	if b.watched = b.first != nil; b.watched {
		time.AfterFunc(rateInterval, b.watch)
	}
	b.mu.Unlock()
	wake(slow)
}

// cutConnection is for who has no room for connections: of those whose body arrives, it is
// the slowest that goes. It returns nil if there is none of that age.
func (b *bodies) cutConnection(young time.Duration) net.Conn {
	b.mu.Lock()
	defer b.mu.Unlock()
	slowest := b.slowest(young, 0)
	if slowest == nil {
		return nil
	}
	b.cutBody(slowest, evictedBody)
	return connOf(slowest.request.Context())
}

// inMemory is for the metrics.
func (b *bodies) inMemory() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}
