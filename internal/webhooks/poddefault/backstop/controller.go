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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/webhooks/internal/cluster"
)

// Name is how the controller is called where controllers are chosen.
const Name = "poddefault-index"

// Leader tells which of several replicas runs the controller.
type Leader = cluster.Leader

// Options are what a controller needs beside a client.
type Options struct {
	Leader  Leader
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
	client     rest.Interface // of PodDefaults
	cluster    rest.Interface // of ClusterPodDefaults
	core       rest.Interface // of PodTemplates
	namespaces metadata.Getter
	metrics    *metrics
	pace       pace
	epoch      atomic.Pointer[epoch] // nil while another replica leads
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
	if options.Leader == nil || options.Logger == nil || options.Metrics == nil || options.Namespaces == nil {
		return nil, errors.New("backstop: a leader, a logger, metrics and namespaces are needed")
	}
	if options.Changed == nil {
		options.Changed = func() {}
	}
	c := &Controller{options: options, log: options.Logger.With("controller", Name), pace: defaultPace}
	var err error
	if c.client, err = cluster.Client(config, kubeflowv1alpha1.GroupVersion, kubeflowv1alpha1.AddToScheme); err != nil {
		return nil, fmt.Errorf("client for PodDefaults: %w", err)
	}
	if c.cluster, err = cluster.Client(config, sallyportv1alpha1.GroupVersion, sallyportv1alpha1.AddToScheme); err != nil {
		return nil, fmt.Errorf("client for ClusterPodDefaults: %w", err)
	}
	if c.core, err = cluster.Client(config, corev1.SchemeGroupVersion, corev1.AddToScheme); err != nil {
		return nil, fmt.Errorf("client for PodTemplates: %w", err)
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for namespaces: %w", err)
	}
	c.namespaces = metadataClient.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	c.metrics, err = newMetrics(options.Metrics)
	return c, err
}

// Ready is nil while every namespace for which the webhook is has an index, otherwise it
// says what is missing.
func (c *Controller) Ready() error {
	e := c.epoch.Load()
	if e == nil {
		return errors.New("the indexes of PodDefaults are another replica's to write")
	}
	return e.ready()
}

// Run runs until the context ends. While another replica leads it does nothing, and
// keeps nothing. It returns no error: the webhook works without.
func (c *Controller) Run(ctx context.Context) error {
	cluster.WhileLeading(ctx, c.options.Leader, c.lead)
	return nil
}

// lead keeps indexes true until the context ends.
func (c *Controller) lead(ctx context.Context) {
	e := newEpoch(c)
	c.epoch.Store(e)
	defer c.epoch.Store(nil)
	var running sync.WaitGroup
	for _, kind := range e.kinds() {
		running.Go(func() { e.reflect(ctx, kind) })
	}
	for range c.pace.writers {
		running.Go(func() { e.write(ctx) })
	}
	ticker := time.NewTicker(c.pace.recheck)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
			e.reselect()
		}
	}
	e.queue.ShutDown()
	running.Wait()
	c.metrics.indexes.Set(0)
	c.metrics.omitted.Set(0)
}
