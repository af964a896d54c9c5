// SPDX-License-Identifier: Apache-2.0

package backstop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/internal/store"
	"github.com/sallyport-io/sallyport/internal/store/control"
)

// Name identifies the controller in configuration.
const Name = "poddefault-index"

// Options configure a controller.
type Options struct {
	// Watcher provides the objects. It must run.
	Watcher *source.Watcher
	// Leader decides which replica runs the controller.
	Leader  control.Leader
	Logger  *slog.Logger
	Metrics prometheus.Registerer
	// Namespaces returns the webhook's current namespace selector. It must be fast.
	Namespaces func() (labels.Selector, error)
	// Changed is called when Ready becomes nil. It must not block.
	Changed func()
}

// Controller keeps an index, possibly empty, in each namespace that the webhook
// selects, while it leads. It never deletes an index: an unused one does no harm. See
// [NewController].
type Controller struct {
	options    Options
	frame      control.Frame
	log        *slog.Logger
	watcher    *source.Watcher
	core       rest.Interface // for PodTemplates
	metrics    *metrics
	pace       pace
	reconciler atomic.Pointer[reconciler] // nil while another replica leads
	omitted    control.Listeners[types.NamespacedName]
}

// pace limits how often indexes are written.
type pace struct {
	// quiet is how long new objects wait for others. Changes that select fewer pods do
	// not wait: until the index has them, the policy refuses pods that need no
	// injection.
	quiet time.Duration
	// again is the minimum time between two writes in one namespace. Large indexes wait
	// longer.
	again time.Duration
	// perSecond and writers limit the writes to all namespaces.
	perSecond, writers int
	// retry is the delay after a failed write. It doubles up to longest.
	retry, longest time.Duration
	// recheck is how often the controller checks the namespace selector, and that every
	// selected namespace has its index.
	recheck time.Duration
}

var defaultPace = pace{
	quiet: 500 * time.Millisecond, again: 250 * time.Millisecond, perSecond: 50, writers: 4,
	retry: 500 * time.Millisecond, longest: 15 * time.Second, recheck: 500 * time.Millisecond,
}

// NewController prepares a controller. [Controller.Run] runs it. The credentials in
// config need the rights of [PolicyRules].
func NewController(config *rest.Config, options Options) (*Controller, error) {
	if options.Watcher == nil || options.Leader == nil || options.Logger == nil || options.Metrics == nil || options.Namespaces == nil {
		return nil, errors.New("backstop: a watcher, a leader, a logger, metrics and namespaces are needed")
	}
	if options.Changed == nil {
		options.Changed = func() {}
	}
	c := &Controller{options: options, log: options.Logger.With("controller", Name), watcher: options.Watcher, pace: defaultPace}
	c.frame = control.Frame{Leader: options.Leader, Log: c.log, Ready: c.watcher.WaitReady}
	var err error
	if c.core, err = store.Client(config, corev1.SchemeGroupVersion, corev1.AddToScheme); err != nil {
		return nil, fmt.Errorf("client for PodTemplates: %w", err)
	}
	c.metrics, err = newMetrics(options.Metrics)
	return c, err
}

// Ready returns nil while every selected namespace has an index, and otherwise what is
// missing.
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

// Run runs until the context ends. While another replica leads it does nothing and uses
// no memory.
func (c *Controller) Run(ctx context.Context) error { return c.frame.Run(ctx, c.lead) }

// lead reconciles indexes until the context ends.
func (c *Controller) lead(ctx context.Context, t *control.Term) {
	r := newReconciler(c)
	c.reconciler.Store(r)
	t.AtEnd(func() {
		c.reconciler.Store(nil)
		c.metrics.indexes.Set(0)
		c.metrics.omitted.Set(0)
	})
	r.reselect()
	t.AtEnd(r.follow(c.watcher)...)
	t.Go(func() { r.indexes.Run(ctx) })
	t.Go(func() {
		select {
		case <-ctx.Done():
			r.namespaces.ShutDown()
		case <-r.indexes.Synced():
			r.namespaces.Run(ctx, c.pace.writers)
		}
	})
	t.Go(func() {
		control.Repeat(ctx, func() time.Duration {
			r.reselect()
			return c.pace.recheck
		})
	})
}
