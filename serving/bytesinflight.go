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
	// smallBody is the size that nearly all reviews stay below.
	smallBody = 64 << 10
	// youngBody is the age before which a body is not considered slow: an API server sends
	// it in one go.
	youngBody = 100 * time.Millisecond
	// rateInterval is how often transfer rates are checked.
	rateInterval = time.Second
)

// bodies limits the memory of request bodies: the bytes that have arrived and the buffer
// for the next ones, regardless of the announced length. A quarter is reserved for small
// bodies.
//
// When the limit is reached, the body that arrives slowest is dropped instead of refusing
// the new one: a caller that only wants to occupy memory is slower than one that wants a
// response.
type bodies struct {
	limit int64 // bytes of all bodies
	large int64 // bytes of all bodies that are not small
	most  int   // bodies arriving at the same time
	// rate is the minimum number of bytes per second after grace.
	rate  int64
	grace time.Duration

	mu              sync.Mutex
	held, heldLarge int64
	first, last     *arrival // arriving bodies, the oldest first
	arriving        int
	watched         bool // a timer to check the rates is running
}

// arrival is the body of a request. It is in the list while it arrives, and then accounts
// for its memory.
type arrival struct {
	w       http.ResponseWriter
	request *http.Request
	began   time.Time
	// received is the number of bytes that have arrived.
	received atomic.Int64

	// Guarded by the mutex of bodies.
	held       int64
	cut        *refusal // why it was dropped; nil if it was not
	listed     bool
	next, prev *arrival
}

func newBodies(o *Options) *bodies {
	return &bodies{
		limit: o.MaxBytesInFlight, large: max(o.MaxBytesInFlight/4*3, o.MaxBodyBytes+1), most: int(o.MaxConnections),
		rate: o.MinBodyRate, grace: o.ReadHeaderTimeout,
	}
}

// begin adds a body to the list, and reserves n bytes for it.
func (b *bodies) begin(a *arrival, size int64) *refusal {
	a.began = time.Now()
	b.mu.Lock()
	var cut []*arrival
	refused := busyBytes
	if b.arriving >= b.most { // HTTP/2 multiplexes requests on a connection
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

// grow reserves n more bytes for a body.
func (b *bodies) grow(a *arrival, n int64) *refusal {
	b.mu.Lock()
	refused, cut := b.room(a, n, nil)
	b.mu.Unlock()
	wake(cut)
	return refused
}

// room makes room for n more bytes, and appends the bodies that it drops to cut.
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

// crowded reports whether there is no room for n more bytes. Dropping bodies of at least
// above bytes then makes room.
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

// hold adds n, which may be negative, to the bytes of a body.
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

// slowest returns the arriving body with the lowest transfer rate, among those of at least
// the given age and size, or nil if there is none.
func (b *bodies) slowest(young time.Duration, above int64) *arrival {
	now := time.Now()
	var slowest *arrival
	for a := b.first; a != nil; a = a.next {
		if now.Sub(a.began) < young || a.held < above {
			continue
		}
		if slowest == nil || a.rate(now) < slowest.rate(now) {
			slowest = a
		}
	}
	return slowest
}

// rate is the transfer rate in bytes per second.
func (a *arrival) rate(now time.Time) float64 {
	return float64(a.received.Load()) / (now.Sub(a.began) + time.Millisecond).Seconds()
}

// cutBody drops a body and releases its bytes. The caller must wake its reader.
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

// arrived ends the arrival of a body. It returns the reason if the body was dropped.
func (b *bodies) arrived(a *arrival) *refusal {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unlist(a)
	return a.cut
}

// give releases the bytes of a body.
func (b *bodies) give(a *arrival) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unlist(a)
	b.hold(a, -a.held)
}

// longPast is an expired deadline, whatever freshConn adds to it.
var longPast = time.Unix(1, 0)

// wake unblocks the readers of dropped bodies. It must be called without the lock.
func wake(cut []*arrival) {
	for _, a := range cut {
		if a.w != nil {
			_ = http.NewResponseController(a.w).SetReadDeadline(longPast) // otherwise the reader notices with the next bytes
		}
	}
}

// watch drops bodies that are too slow, now and as long as any arrive.
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

// slow returns the arriving bodies of at least the given age.
func (b *bodies) slow(young time.Duration) (slow []*arrival) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for a := b.first; a != nil && now.Sub(a.began) >= young; a = a.next {
		slow = append(slow, a)
	}
	return slow
}

// cutConnection drops a body to free its connection, which it returns; nil if the body has arrived.
func (b *bodies) cutConnection(a *arrival) net.Conn {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !a.listed {
		return nil
	}
	b.cutBody(a, evictedBody)
	return connOf(a.request.Context())
}

// inMemory is the value of a metric.
func (b *bodies) inMemory() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}
