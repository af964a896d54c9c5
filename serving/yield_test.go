// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-io/sallyport/serving/internal/seats"
)

// leaving yields its seat until released, and reports whether it got a seat again.
func leaving(called chan<- struct{}, let <-chan struct{}) func(context.Context, http.ResponseWriter, Call) {
	return func(ctx context.Context, w http.ResponseWriter, call Call) {
		if !call.Yield(ctx, func() { called <- struct{}{}; <-let }) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, "back")
	}
}

func TestAWaitingHandlerDelaysNoOtherReview(t *testing.T) {
	called, let := make(chan struct{}), make(chan struct{})
	h := start(t, func(o *Options) {
		o.MaxConcurrentReviews = 1
		o.Routes = []Route{{Path: "/leaving", Answer: leaving(called, let)}, {Path: "/echo", Handler: echo}}
	})
	var waiting []*rawConn
	for range 3 {
		c := h.dial()
		c.send("POST /leaving HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
		<-called // more of them than there are seats
		waiting = append(waiting, c)
	}
	h.post("/echo", "hello").expect(t, 200, "hello")
	close(let)
	for _, c := range waiting {
		c.reply().expect(t, 200, "back")
	}
	h.post("/echo", "hello").expect(t, 200, "hello")
	if n := h.seats.InUse(); n != 0 {
		t.Errorf("%d seats are taken for good", n)
	}
}

func TestWhoFindsNoPlaceAfterwardsIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{seats: seats.New(1, 1)}
		a := &answer{server: s, to: &route{}}
		ctx := withDeadline(t.Context(), time.Now().Add(time.Minute))
		defer ctx.end()
		a.takeSeat(ctx, time.Now(), false)
		var other seats.Seat
		if a.leave(ctx, func() { other, _ = s.seats.Take(ctx, time.Now(), a.flow, false) }) {
			t.Error("two have the one seat")
		}
		other.Give()
		if a.giveSeat(); s.seats.InUse() != 0 {
			t.Error("a seat was given back that was not its own, or not given")
		}
	})
}

func TestSeveralWaitsOfOneReviewYieldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{seats: seats.New(2, 1)}
		a := &answer{server: s, to: &route{}}
		a.takeSeat(t.Context(), time.Now(), false)
		for range 3 {
			go a.leave(context.WithoutCancel(t.Context()), func() { time.Sleep(time.Second) })
		}
		synctest.Wait()
		if n := s.seats.InUse(); n != 0 {
			t.Errorf("%d seats are taken while all wait", n)
		}
		time.Sleep(2 * time.Second)
		if n := s.seats.InUse(); n != 1 {
			t.Errorf("%d seats are taken afterwards, want the review's one", n)
		}
		go a.leave(t.Context(), func() { time.Sleep(time.Second) })
		synctest.Wait()
		a.giveSeat() // the answer is sent; yielding does not delay it
		time.Sleep(2 * time.Second)
		if n := s.seats.InUse(); n != 0 {
			t.Errorf("%d seats are taken when all is over", n)
		}
	})
}
