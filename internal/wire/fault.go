// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/time/rate"

	"github.com/sallyport-io/sallyport/admission"
)

// Fault says why a review was not decided. Its HTTP status is 4xx for faults of the
// caller and 5xx for faults of the webhook.
type Fault struct {
	Code int
	// RetryAfter tells the API server to call again, if Retry is true.
	Retry      bool
	RetryAfter time.Duration
	Err        error
}

// Hint says what the handler's author could have meant, and how to write it; empty if the
// error does not tell. It is for the author: logs and tests have it, answers do not.
func (f *Fault) Hint() string {
	var hinted interface{ Hint() string }
	if errors.As(f.Err, &hinted) {
		return hinted.Hint()
	}
	return ""
}

func (f *Fault) Error() string { return f.Err.Error() }
func (f *Fault) Unwrap() error { return f.Err }

// statusClientClosedRequest is the status that proxies log when a client disconnects.
// No client reads it.
const statusClientClosedRequest = 499

// faultOf translates a handler's error.
func faultOf(ctx context.Context, err error) *Fault {
	if after, ok := admission.RetryAfter(err); ok {
		return &Fault{Code: http.StatusServiceUnavailable, Retry: true, RetryAfter: after, Err: err}
	}
	switch ended := ctx.Err(); {
	case errors.Is(ended, context.Canceled) && !late(ctx): // a late handler makes the caller leave
		return &Fault{Code: statusClientClosedRequest, Err: fmt.Errorf("the caller went away: %w", err)}
	case ended != nil:
		return &Fault{Code: http.StatusGatewayTimeout, Err: fmt.Errorf("no decision before the deadline of the call: %w", err)}
	}
	return &Fault{Code: http.StatusInternalServerError, Err: err}
}

// faultLog logs faults: the first ten of each kind, then one per second, because anyone
// who reaches the port can cause them. Metrics count all faults.
type faultLog struct {
	logger                    *slog.Logger
	callers, passing, lasting rate.Sometimes
	remarks                   rate.Sometimes // about answers, see remark
}

func newFaultLog(logger *slog.Logger) *faultLog {
	sometimes := func() rate.Sometimes { return rate.Sometimes{First: 10, Interval: time.Second} }
	return &faultLog{logger: logger, callers: sometimes(), passing: sometimes(), lasting: sometimes(), remarks: sometimes()}
}

func (l *faultLog) log(ctx context.Context, fault *Fault) {
	kind, level := &l.lasting, slog.LevelError
	switch {
	case fault.Code < http.StatusInternalServerError:
		kind, level = &l.callers, slog.LevelWarn
	case fault.Retry:
		kind, level = &l.passing, slog.LevelWarn
	}
	kind.Do(func() {
		attributes := []any{"code", fault.Code, "error", fault.Err}
		if hint := fault.Hint(); hint != "" {
			attributes = append(attributes, "hint", hint)
		}
		l.logger.Log(ctx, level, "review not answered", attributes...)
	})
}

// write sends the fault for the webhook.
func (f *Fault) write(w http.ResponseWriter, webhook string) {
	header := w.Header()
	if f.Retry {
		// Together, these make the API server retry on a new connection, which may
		// reach another replica.
		seconds := f.RetryAfter / time.Second
		if f.RetryAfter%time.Second > 0 {
			seconds++
		}
		header.Set("Retry-After", strconv.FormatInt(int64(max(seconds, 0)), 10))
		header.Set("Connection", "close")
	}
	if f.Code == http.StatusMethodNotAllowed {
		header.Set("Allow", http.MethodPost)
	}
	http.Error(w, webhook+": "+f.Error(), f.Code)
}
