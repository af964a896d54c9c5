// SPDX-License-Identifier: Apache-2.0

package control

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/test/lab"
)

// TestATermBeginsWhenAllIsReadAndEndsWithTheLeadership: nothing of a term outlives it.
func TestATermBeginsWhenAllIsReadAndEndsWithTheLeadership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leader, read := lab.NewLeader(false), make(chan struct{})
		var happened []string
		frame := Frame{Leader: leader, Log: slog.New(slog.DiscardHandler), Ready: func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-read:
				return nil
			}
		}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- frame.Run(ctx, func(ctx context.Context, term *Term) {
				happened = append(happened, "begun")
				term.AtEnd(func() { happened = append(happened, "last") }, func() { happened = append(happened, "handler removed") })
				term.Go(func() { <-ctx.Done(); time.Sleep(time.Second); happened = append(happened, "worked") })
			})
		}()
		whole := []string{"begun", "worked", "handler removed", "last"}
		for _, step := range []struct {
			what string
			do   func()
			want []string
		}{
			{"another replica leads", func() { time.Sleep(time.Minute) }, nil},
			{"it leads, and not everything was read", func() { leader.Lead(true); time.Sleep(time.Minute) }, nil},
			{"it does not lead any more", func() { leader.Lead(false) }, nil},
			{"everything was read", func() { close(read) }, nil},
			{"it leads again", func() { leader.Lead(true) }, whole[:1]},
			{"it loses the lease", func() { leader.Lead(false); time.Sleep(time.Minute) }, whole},
			{"another term", func() { leader.Lead(true); time.Sleep(time.Minute) }, slices.Concat(whole, whole[:1])},
			{"shutdown", func() { cancel(); time.Sleep(time.Minute) }, slices.Concat(whole, whole)},
		} {
			step.do()
			synctest.Wait()
			if !slices.Equal(happened, step.want) {
				t.Errorf("%s: got %q, want %q", step.what, happened, step.want)
			}
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestRepeatGoesOnUntilToldOtherwise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, times := time.Now(), 0
		Repeat(t.Context(), func() time.Duration {
			if times++; times == 4 {
				return Never
			}
			return time.Minute
		})
		if times != 4 || time.Since(start) != 3*time.Minute {
			t.Errorf("%d times in %s", times, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		times = 0
		if Repeat(ctx, func() time.Duration { times++; return time.Minute }); times != 2 {
			t.Errorf("%d times until the context ends", times)
		}
	})
}

// TestFailuresOfWrites: what is retried, what is logged, and what is counted as which result.
func TestFailuresOfWrites(t *testing.T) {
	resource := schema.GroupResource{Resource: "poddefaults"}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx             context.Context
		err             error
		retried, logged bool
		result          string
	}{
		"none":                                {t.Context(), nil, false, false, Success},
		"the object was deleted meanwhile":    {t.Context(), apierrors.NewNotFound(resource, "x"), false, false, Conflict},
		"the object has changed meanwhile":    {t.Context(), apierrors.NewConflict(resource, "x", errors.New("changed")), true, false, Conflict},
		"another replica has created it":      {t.Context(), apierrors.NewAlreadyExists(resource, "x"), true, true, Conflict},
		"the API server is away":              {t.Context(), errors.New("connection refused"), true, true, Failure},
		"the leadership was lost meanwhile":   {gone, context.Canceled, true, false, Failure},
		"the right to write has been revoked": {t.Context(), apierrors.NewForbidden(resource, "x", errors.New("no")), true, true, Failure},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			frame := Frame{Log: slog.New(slog.NewTextHandler(&log, nil))}
			err := frame.Failed(test.ctx, test.err, "status", "object", "x")
			if (err != nil) != test.retried {
				t.Errorf("returned %v", err)
			}
			if logged := strings.Contains(log.String(), `msg="cannot write, will try again" object=x what=status error=`); logged != test.logged {
				t.Errorf("logged %q", log.String())
			}
			if got := Result(test.err); got != test.result {
				t.Errorf("counted as %s", got)
			}
		})
	}
	if got := testutil.CollectAndCount(Writes("writes_total", "Writes.", Success, Failure)); got != 2 {
		t.Errorf("%d series before the first write", got)
	}
}

func TestListenersAreToldUntilTheyAreRemoved(t *testing.T) {
	var l Listeners[string]
	l.Tell("before")
	var told []string
	remove := l.Add(func(what string) { told = append(told, "a "+what) })
	var removeOther func()
	removeOther = l.Add(func(what string) { removeOther(); told = append(told, "b "+what) })
	l.Tell("1")
	l.Tell("2")
	remove()
	l.Tell("3")
	if want := []string{"a 1", "b 1", "a 2"}; !slices.Equal(told, want) {
		t.Errorf("got %q, want %q", told, want)
	}
}
