// SPDX-License-Identifier: Apache-2.0

package backstop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/internal/store"
	"github.com/sallyport-io/sallyport/internal/webhooks/poddefault"
)

// Name is how the controller is called where controllers are chosen.
const Name = "poddefault-index"

// Options are what a controller needs beside a client.
type Options struct {
	// Watcher knows the objects. It must run.
	Watcher *poddefault.Watcher
	// Leader tells which of several replicas runs the controller.
	Leader  store.Leader
	Logger  *slog.Logger
	Metrics prometheus.Registerer
	// Namespaces selects those for which the webhook is, as it is now. It must be fast.
	Namespaces func() (labels.Selector, error)
	// Changed is called when Ready begins to return nil. It must not wait.
	Changed func()
}

// Controller keeps an index, which may be empty, in each namespace for which the webhook
// is, while it leads. It never deletes one: what is not read does no harm. See
// [NewController].
type Controller struct {
	options    Options
	log        *slog.Logger
	watcher    *poddefault.Watcher
	core       rest.Interface // of PodTemplates
	metrics    *metrics
	pace       pace
	reconciler atomic.Pointer[reconciler] // nil while another replica leads
}

// pace says how often indexes are written.
type pace struct {
	// quiet is how long new objects wait for others. What selects less than before does not
	// wait: until the index says so too, pods are refused that nothing would inject.
	quiet time.Duration
	// again is how long after a write the next one in the same namespace comes at the
	// earliest, and longer for one that is large.
	again time.Duration
	// perSecond and writers bound the writes to all namespaces.
	perSecond, writers int
	// retry is how long a write waits after a failure, doubled up to longest.
	retry, longest time.Duration
	// recheck is how often it is looked whether other namespaces are selected, and whether
	// all of them have their indexes.
	recheck time.Duration
}

var defaultPace = pace{
	quiet: 500 * time.Millisecond, again: 250 * time.Millisecond, perSecond: 50, writers: 4,
	retry: 500 * time.Millisecond, longest: 15 * time.Second, recheck: 500 * time.Millisecond,
}

// NewController prepares a controller; [Controller.Run] runs it. The credentials in
// config need the rights of [PolicyRules].
func NewController(config *rest.Config, options Options) (*Controller, error) {
	if options.Watcher == nil || options.Leader == nil || options.Logger == nil || options.Metrics == nil || options.Namespaces == nil {
		return nil, errors.New("backstop: a watcher, a leader, a logger, metrics and namespaces are needed")
	}
	if options.Changed == nil {
		options.Changed = func() {}
	}
	c := &Controller{options: options, log: options.Logger.With("controller", Name), watcher: options.Watcher, pace: defaultPace}
	var err error
	if c.core, err = store.Client(config, corev1.SchemeGroupVersion, corev1.AddToScheme); err != nil {
		return nil, fmt.Errorf("client for PodTemplates: %w", err)
	}
	c.metrics, err = newMetrics(options.Metrics)
	return c, err
}

// Ready is nil while every namespace for which the webhook is has an index, otherwise it
// says what is missing.
func (c *Controller) Ready() error {
	if err := c.watcher.Ready(); err != nil {
		return err
	}
	r := c.reconciler.Load()
	if r == nil {
		return errors.New("the indexes of PodDefaults are another replica's to write")
	}
	return r.ready()
}

// Run runs until the context ends. While another replica leads it does nothing, and
// holds nothing. It returns no error: the webhook works without.
func (c *Controller) Run(ctx context.Context) error {
	store.WhileLeading(ctx, c.options.Leader, c.lead)
	return nil
}

// lead keeps indexes true until the context ends. Nothing is written before everything was
// read.
func (c *Controller) lead(ctx context.Context) {
	if c.watcher.WaitReady(ctx) != nil {
		return
	}
	r := newReconciler(c)
	defer r.namespaces.ShutDown()
	c.reconciler.Store(r)
	defer c.reconciler.Store(nil)
	r.reselect()
	defer r.follow(c.watcher)()
	var running sync.WaitGroup
	running.Go(func() { r.indexes.Run(ctx) })
	running.Go(func() {
		select {
		case <-ctx.Done():
		case <-r.indexes.Synced():
			r.namespaces.Run(ctx, c.pace.writers)
		}
	})
	ticker := time.NewTicker(c.pace.recheck)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
			r.reselect()
		}
	}
	running.Wait()
	c.metrics.indexes.Set(0)
	c.metrics.omitted.Set(0)
}
