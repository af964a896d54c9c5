// SPDX-License-Identifier: Apache-2.0

package seats

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// reasons are the labels of refusals in metrics.
var reasons = map[error]string{ErrFull: "waiting", ErrBusy: "concurrency"}

// of is the name of a flow.
func of(name string) func() string { return func() string { return name } }

// lines are seats with their waiters.
type lines struct {
	*Seats
	t   *testing.T
	mu  sync.Mutex
	got []string // who has got a seat, in that order
}

func (l *lines) note(who string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.got = append(l.got, who)
}

// wants requests a seat for a flow, for a minute.
func (l *lines) wants(flow, who string) (given *Seat) {
	given = &Seat{}
	go func() {
		var refused error
		if *given, refused = l.Take(l.t.Context(), time.Now().Add(time.Minute), of(flow), false); refused == nil {
			l.note(who)
		} else {
			l.note(who + ": " + reasons[refused])
		}
	}()
	synctest.Wait()
	return given
}

func (l *lines) expect(want ...string) {
	l.t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.got) != len(want) {
		l.t.Fatalf("got a seat: %v, want %v", l.got, want)
	}
	for i := range want {
		if l.got[i] != want[i] {
			l.t.Fatalf("got a seat: %v, want %v", l.got, want)
		}
	}
}

func TestPlaces(t *testing.T) {
	for name, test := range map[string]struct {
		seats, queue int
		run          func(l *lines)
	}{
		"who waits gets a seat when one is given back, in order": {1, 10, func(l *lines) {
			first := l.wants("a", "1")
			second := l.wants("a", "2")
			l.wants("a", "3")
			l.expect("1")
			first.Give()
			l.expect("1", "2")
			second.Give()
			l.expect("1", "2", "3")
		}},
		"flows take turns, however long their lines are": {1, 10, func(l *lines) {
			held := l.wants("a", "a0")
			a1 := l.wants("a", "a1")
			l.wants("a", "a2")
			l.wants("a", "a3")
			b1 := l.wants("b", "b1")
			c1 := l.wants("c", "c1")
			for _, given := range []*Seat{held, a1, b1, c1} {
				given.Give()
				synctest.Wait()
			}
			l.expect("a0", "a1", "b1", "c1", "a2")
		}},
		"a flow has half of the seats, and others need not wait for it": {8, 10, func(l *lines) {
			for i := range 6 {
				l.wants("a", "a"+strconv.Itoa(i))
			}
			l.expect("a0", "a1", "a2", "a3")
			l.wants("b", "b0")
			l.wants("b", "b1")
			l.wants("c", "c0")
			l.wants("c", "c1")
			l.expect("a0", "a1", "a2", "a3", "b0", "b1", "c0", "c1")
		}},
		"who has half of them gets one only for one that it gives back": {8, 10, func(l *lines) {
			var given []*Seat
			for i := range 6 {
				given = append(given, l.wants("a", "a"+strconv.Itoa(i)))
			}
			b := l.wants("b", "b0")
			b.Give()
			l.expect("a0", "a1", "a2", "a3", "b0")
			given[0].Give() // was not asked for its flow
			l.expect("a0", "a1", "a2", "a3", "b0", "a4")
			given[3].Give() // was
			l.expect("a0", "a1", "a2", "a3", "b0", "a4", "a5")
		}},
		"a full queue has no room for one more of its flow": {1, 2, func(l *lines) {
			l.wants("a", "a0")
			l.wants("a", "a1")
			l.wants("a", "a2")
			l.wants("a", "a3")
			l.expect("a0", "a3: waiting")
		}},
		"where lines are full, who came last in the longest one makes room for another flow": {1, 4, func(l *lines) {
			held := l.wants("a", "a0")
			l.wants("b", "b1")
			for i := 1; i < 4; i++ {
				l.wants("a", "a"+strconv.Itoa(i))
			}
			l.wants("c", "c1")
			l.expect("a0", "a3: waiting")
			l.wants("d", "d1")
			l.expect("a0", "a3: waiting", "a2: waiting")
			l.wants("e", "e1")
			l.expect("a0", "a3: waiting", "a2: waiting", "e1: waiting") // at most one seat each
			held.Give()
			l.expect("a0", "a3: waiting", "a2: waiting", "e1: waiting", "b1")
		}},
		"who waits gives up in time, and its seat in queue is gone": {1, 1, func(l *lines) {
			l.wants("a", "a0")
			l.wants("a", "a1")
			time.Sleep(time.Minute)
			l.expect("a0", "a1: concurrency")
			l.wants("a", "a2")
			l.expect("a0", "a1: concurrency")
		}},
		"who was at work before comes first, in a queue that is full too": {1, 1, func(l *lines) {
			held := l.wants("a", "a0")
			l.wants("a", "a1")
			go func() {
				if _, refused := l.Take(l.t.Context(), time.Now().Add(time.Minute), of("a"), true); refused == nil {
					l.note("back")
				}
			}()
			synctest.Wait()
			held.Give()
			l.expect("a0", "back")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &lines{Seats: New(test.seats, test.queue), t: t}
				test.run(l)
				time.Sleep(time.Hour) // all who wait give up
				synctest.Wait()
				if n := l.Queued(); n != 0 {
					t.Errorf("%d wait for ever", n)
				}
			})
		})
	}
}

func TestWhoWaitsForAPlaceGivesUpWithItsContext(t *testing.T) {
	p := New(1, 1)
	ctx, cancel := context.WithCancel(t.Context())
	held, _ := p.Take(ctx, time.Now(), of("a"), false)
	cancel()
	if _, refused := p.Take(ctx, time.Now().Add(time.Hour), of("a"), false); refused == nil {
		t.Error("two have the one seat")
	}
	held.Give()
	if len(p.flows) != 0 || p.InUse() != 0 || p.Queued() != 0 {
		t.Errorf("%d flows are not forgotten, %d at work, %d in queue", len(p.flows), p.InUse(), p.Queued())
	}
}

func TestNobodyIsAskedForItsFlowWhileThereIsRoom(t *testing.T) {
	p := New(8, 1)
	for range 2 {
		if _, refused := p.Take(t.Context(), time.Now(), func() string { t.Error("asked"); return "" }, false); refused != nil {
			t.Error(refused)
		}
	}
	asked := false
	if _, refused := p.Take(t.Context(), time.Now(), func() string { asked = true; return "" }, false); refused != nil || !asked {
		t.Error("was not asked though a quarter is taken")
	}
}
