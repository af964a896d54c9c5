// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/test/lab"
)

const (
	// The rates of creates. The long run's is above the 100 that it promises.
	longRate  = 110
	shortRate = 50
	// createTimeout is how long a client waits for a create.
	createTimeout = 20 * time.Second
	// maxInFlight bounds the creates that wait for an answer, as the API server would
	// if the stream were not exempt from its limits: it must survive its own recovery.
	maxInFlight = 500
	// A batch is what is created within this time; it is deleted some time later.
	batchTime = 5 * time.Second
	batchKey  = "batch"
)

var atOnce = metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}

// A stream creates pods at a steady rate, whether the answers come or not. No create
// is repeated.
type stream struct {
	c           *cluster
	name        string
	podDefaults int
	rate        int // of creates that are offered in a second
	cancel      context.CancelFunc
	done        sync.WaitGroup
	inFlight    sync.WaitGroup
	observer    *observer
	began       time.Time

	mu    sync.Mutex
	tally tally
}

// A tally is what has become of creates.
type tally struct {
	attempts   int
	elapsed    time.Duration
	succeeded  []time.Time     // when they were asked for
	took       []time.Duration // those that succeeded
	failures   []attempt
	uninjected []string // as answered, or as stored
	held       int      // not made: too many waited for an answer
}

// An attempt is a create that failed.
type attempt struct {
	start, end time.Time
	err        error
}

// startStream begins to create pods in the row's namespace, at the rate of most rows.
func (c *cluster) startStream(ctx context.Context, name string, podDefaults int) (*stream, error) {
	rate := longRate
	if c.settings.short {
		rate = shortRate
	}
	return c.startStreamAt(ctx, name, podDefaults, rate)
}

// startStreamAt is startStream with so many creates offered in a second.
func (c *cluster) startStreamAt(ctx context.Context, name string, podDefaults, rate int) (*stream, error) {
	s := &stream{c: c, name: name, podDefaults: podDefaults, rate: rate, began: time.Now()}
	var err error
	if s.observer, err = c.observe(ctx); err != nil {
		return nil, err
	}
	ctx, s.cancel = context.WithCancel(ctx)
	s.done.Go(func() { s.create(ctx, time.Second/time.Duration(rate)) })
	s.done.Go(func() { s.sweep(ctx) })
	c.streams = append(c.streams, s)
	return s, nil
}

// abandon ends the stream, unless it was stopped; nobody is interested any more.
func (s *stream) abandon() {
	s.cancel()
	s.observer.cancel()
	s.done.Wait()
	s.inFlight.Wait()
	s.observer.done.Wait()
}

// create makes a create for each interval that has passed.
func (s *stream) create(ctx context.Context, interval time.Duration) {
	slots := make(chan struct{}, maxInFlight)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for n := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for due := int(time.Since(s.began) / interval); n < due; n++ {
			select {
			case slots <- struct{}{}:
			default:
				s.mu.Lock()
				s.tally.held++
				s.mu.Unlock()
				continue
			}
			number := n // of this create: n goes on
			s.inFlight.Go(func() {
				s.createOne(context.WithoutCancel(ctx), number)
				<-slots
			})
		}
	}
}

func (s *stream) createOne(ctx context.Context, n int) {
	pod := newPod(fmt.Sprintf("%s-%d", s.name, n), n, s.podDefaults)
	pod.Labels[batchKey] = strconv.Itoa(int(time.Since(s.began) / batchTime))
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	start := time.Now()
	answer := &corev1.Pod{}
	err := s.c.clients.CoreV1().RESTClient().Post().Namespace(s.c.namespace).Resource("pods").
		Body(pod).MaxRetries(0).Do(ctx).Into(answer)
	end := time.Now()

	s.mu.Lock()
	defer s.mu.Unlock()
	s.tally.attempts++
	if err != nil {
		s.tally.failures = append(s.tally.failures, attempt{start, end, err})
		return
	}
	s.tally.succeeded = append(s.tally.succeeded, start)
	s.tally.took = append(s.tally.took, end.Sub(start))
	if err := checkInjected(answer); err != nil {
		s.tally.uninjected = append(s.tally.uninjected, "answered: "+err.Error())
	}
}

// sweep deletes what is old, so that etcd stays small. The observer has seen it.
func (s *stream) sweep(ctx context.Context) {
	const age = 3 // batches
	for batch := 0; ; batch++ {
		if !lab.Sleep(ctx, time.Until(s.began.Add(time.Duration(batch+age)*batchTime))) {
			return
		}
		// What fails here, the end of the row deletes.
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		_ = s.c.clients.CoreV1().Pods(s.c.namespace).DeleteCollection(ctx, atOnce,
			metav1.ListOptions{LabelSelector: batchKey + "=" + strconv.Itoa(batch)})
		cancel()
	}
}

// failuresSoFar is for rows that tell how it goes.
func (s *stream) failuresSoFar() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tally.failures)
}

// lastFailure is when the last create failed, or the other time if none did after it.
func (s *stream) lastFailure(after time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.tally.failures {
		if f.end.After(after) {
			after = f.end
		}
	}
	return after
}

// awaitSuccess returns the time of the first create after that time that succeeded.
func (s *stream) awaitSuccess(ctx context.Context, after time.Time, patience time.Duration) (time.Time, error) {
	var found time.Time
	err := lab.Await(ctx, patience, "a create that succeeds", func(context.Context) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i := len(s.tally.succeeded) - 1; i >= 0; i-- {
			if at := s.tally.succeeded[i]; at.After(after) && (found.IsZero() || at.Before(found)) {
				found = at
			}
		}
		if found.IsZero() {
			return fmt.Errorf("%d failures so far", len(s.tally.failures))
		}
		return nil
	})
	return found, err
}

// stop ends the stream, waits for all answers and until the observer has seen what was
// stored, and adds it all to the row's result. The failures are for the row to judge.
func (s *stream) stop(ctx context.Context, out *result) tally {
	elapsed := time.Since(s.began)
	s.cancel()
	s.done.Wait()
	s.inFlight.Wait()
	s.tally.elapsed = elapsed
	stored, uninjected, err := s.observer.stop(ctx)
	if err != nil {
		out.problemf("what was stored is not fully known: %v", err)
	}
	if err == nil && stored < len(s.tally.succeeded) {
		out.problemf("%d creates succeeded, but %d pods were seen being stored", len(s.tally.succeeded), stored)
	}
	for _, pod := range uninjected {
		s.tally.uninjected = append(s.tally.uninjected, "stored: "+pod)
	}
	out.Creates += s.tally.attempts
	out.CreateSeconds += elapsed.Seconds()
	out.Failed += len(s.tally.failures)
	out.Uninjected += len(uninjected)
	for _, class := range classes(s.tally.failures, 5) {
		s.c.progress.sayf("  failed: %s", class)
	}
	if s.tally.held > 0 {
		out.notef("%d creates were queued while %d waited for an answer", s.tally.held, maxInFlight)
	}
	offered := float64(s.tally.attempts+s.tally.held) / elapsed.Seconds()
	if !s.c.settings.short && elapsed > 5*time.Second && offered < min(100, float64(s.rate)*.9) {
		out.problemf("the machine made only %.0f creates/s of %d", offered, s.rate)
	}
	return s.tally
}
