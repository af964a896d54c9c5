// SPDX-License-Identifier: Apache-2.0

package persistentvolumelabel

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/sallyport-io/sallyport/admission"
)

// maxRemembered limits the cached answers. The oldest are dropped first.
const maxRemembered = 4096

// A question is what the answer depends on: the disk, and labels that tell a provider
// where to look for it. It is comparable.
type question struct {
	disk     string
	topology topology
}

// lookups query the cloud: once for concurrent equal questions, and then not again for
// a while. A cloud that hangs or panics only affects requests for that volume.
type lookups struct {
	labeler  Labeler
	remember time.Duration
	timeout  time.Duration
	slots    chan struct{} // one per call that has not returned
	metrics  *Metrics      // may be nil
	now      func() time.Time

	mu    sync.Mutex
	calls map[question]*call // running and completed
	// answered are the cached calls, oldest first.
	answered []question
}

// A call is one query of the cloud. It is immutable after done is closed.
type call struct {
	done    chan struct{}
	over    bool // guarded by lookups.mu
	expires time.Time
	answer  *answer
	err     error
}

func newLookups(labeler Labeler, settings Settings, metrics *Metrics) *lookups {
	return &lookups{
		labeler:  labeler,
		metrics:  metrics,
		remember: time.Duration(settings.RememberSeconds) * time.Second,
		timeout:  time.Duration(settings.CallSeconds) * time.Second,
		slots:    make(chan struct{}, settings.MaxCalls),
		now:      time.Now,
		calls:    map[question]*call{},
	}
}

// ask returns the cloud's answer for a volume, which must not be changed. An error of
// the cloud is a decision, see [isDecision]; others are faults. Volume creates the
// cloud's copy of the volume.
func (l *lookups) ask(ctx context.Context, q question, volume func() (*corev1.PersistentVolume, error)) (*answer, error) {
	c, err := l.join(q, volume)
	if err != nil {
		return nil, err
	}
	select {
	case <-c.done: // no timer for cached answers
		return c.answer, c.err
	default:
	}
	select {
	case <-c.done:
		return c.answer, c.err
	case <-ctx.Done():
		return nil, fmt.Errorf("the cloud has not told the labels of a volume in time: %w", ctx.Err())
	}
}

// join returns the call for a question, or starts it.
func (l *lookups) join(q question, volume func() (*corev1.PersistentVolume, error)) (*call, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget()
	if c := l.calls[q]; c != nil {
		return c, nil
	}
	pv, err := volume()
	if err != nil {
		return nil, err
	}
	select {
	case l.slots <- struct{}{}:
	default:
		l.metrics.refused()
		return nil, admission.Unavailable(fmt.Errorf("%d calls to the cloud are under way already", cap(l.slots)), time.Second)
	}
	c := &call{done: make(chan struct{})}
	l.calls[q] = c
	go l.run(q, c, pv)
	return c, nil
}

// run queries the cloud. If the cloud ignores its context, the call is abandoned, and
// its slot becomes free when it returns.
func (l *lookups) run(q question, c *call, pv *corev1.PersistentVolume) {
	defer func() { <-l.slots }()
	done := l.metrics.began()
	ctx, cancel := context.WithTimeout(context.Background(), l.timeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		l.finish(q, c, nil, fmt.Errorf("the cloud has not told the labels of a volume within %s", l.timeout))
	})
	defer stop()
	labels, err := l.get(ctx, pv)
	done(err)
	if ctx.Err() != nil {
		return // AfterFunc reports it
	}
	l.finish(q, c, labels, err)
}

// get turns a panic of the provider into a fault with its location.
func (l *lookups) get(ctx context.Context, pv *corev1.PersistentVolume) (labels map[string]string, err error) {
	defer func() {
		if value := recover(); value != nil {
			labels, err = nil, fmt.Errorf("the cloud provider has panicked (%s)%s", describePanic(value), panickedAt())
		}
	}()
	labels, err = l.labeler.GetLabelsForVolume(ctx, pv)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		err = &decision{err}
	}
	return labels, err
}

// finish ends a call, the first time it is called. It caches labels, but not errors.
func (l *lookups) finish(q question, c *call, labels map[string]string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.over {
		return
	}
	c.over, c.err = true, err
	if err == nil {
		c.answer = newAnswer(labels)
	}
	c.expires = l.now().Add(l.remember)
	if err != nil || l.remember == 0 {
		delete(l.calls, q)
	} else {
		l.answered = append(l.answered, q)
		l.forget()
	}
	close(c.done)
}

// forget drops expired answers, and the oldest if there are too many.
func (l *lookups) forget() {
	now := l.now()
	for len(l.answered) > 0 {
		oldest := l.answered[0]
		if len(l.answered) <= maxRemembered && now.Before(l.calls[oldest].expires) {
			return
		}
		delete(l.calls, oldest)
		l.answered[0] = question{} // for the garbage collector
		l.answered = l.answered[1:]
	}
}

// decision is an error with which the cloud refuses a volume.
type decision struct{ error }

func (d *decision) Unwrap() error { return d.error }

func isDecision(err error) bool {
	var d *decision
	return errors.As(err, &d)
}

// describePanic omits the value if it may contain parts of an object.
func describePanic(value any) string {
	if err, ok := value.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("with a value of type %T", value)
}

// panickedAt returns the function and line of a panic that the caller has recovered.
func panickedAt() string {
	var counters [32]uintptr
	frames := runtime.CallersFrames(counters[:runtime.Callers(1, counters[:])])
	panicking := false
	for {
		frame, more := frames.Next()
		switch {
		case frame.Function == "runtime.gopanic":
			panicking = true
		case panicking && !strings.HasPrefix(frame.Function, "runtime."):
			return fmt.Sprintf(" in %s, line %d", frame.Function, frame.Line)
		}
		if !more {
			return ""
		}
	}
}
