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

// maxRemembered bounds the answers that are remembered. The oldest is forgotten first.
const maxRemembered = 4096

// A question is what the answer depends on: the disk, and labels that say where a
// provider shall look for it. It is comparable.
type question struct {
	disk     string
	topology topology
}

// lookups ask the cloud: once for all who ask the same at a time, and not again for a
// while. A cloud that hangs or panics harms only who asks for that volume.
type lookups struct {
	labeler  Labeler
	remember time.Duration
	timeout  time.Duration
	slots    chan struct{} // one for each call that has not come back
	metrics  *Metrics      // nil if nobody looks
	now      func() time.Time

	mu    sync.Mutex
	calls map[question]*call // under way, and answered
	// answered are those of calls that are remembered, the oldest first.
	answered []question
}

// A call is one answer of the cloud. After done is closed nothing of it changes.
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

// ask returns what the cloud says of a volume, which must not be changed. An error of the cloud
// is a decision, see [isDecision]; others are faults. Volume makes what the cloud gets.
func (l *lookups) ask(ctx context.Context, q question, volume func() (*corev1.PersistentVolume, error)) (*answer, error) {
	c, err := l.join(q, volume)
	if err != nil {
		return nil, err
	}
	select {
	case <-c.done: // no timer for what is known
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

// join finds the call for a question, or begins it.
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

// run asks the cloud. If the cloud does not mind its context, the call is given up all
// the same, and its slot is free when it has come back.
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
		return // AfterFunc tells
	}
	l.finish(q, c, labels, err)
}

// get turns a panic of the provider into a fault that says where it was.
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

// finish ends a call, the first time. Labels are remembered, errors are not.
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

// forget drops answers that have expired, and the oldest if there are too many.
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

// decision is an error by which the cloud refuses a volume.
type decision struct{ error }

func (d *decision) Unwrap() error { return d.error }

func isDecision(err error) bool {
	var d *decision
	return errors.As(err, &d)
}

// describePanic leaves the value out where it may hold parts of an object.
func describePanic(value any) string {
	if err, ok := value.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("with a value of type %T", value)
}

// panickedAt is the function and line of a panic that was recovered by the caller.
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
