// SPDX-License-Identifier: Apache-2.0

// Package status writes into PodDefaults and ClusterPodDefaults what became of them:
// whether they can work, with which others they disagree, and whether forms can offer
// them. One replica does it, and none has to: no review waits for a status.
//
// A status is written when it says something else than it should, and seldom: after a
// moment of quiet, and again for the same generation only after ever longer times. Each
// write changes the resourceVersion that pods carry as a mark.
package status

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/webhooks/internal/cluster"
)

// Name is how the controller is called where controllers are chosen.
const Name = "poddefault-status"

// Leader tells which of several replicas runs the controller.
type Leader = cluster.Leader

// Options are what a controller needs beside a client.
type Options struct {
	Leader  Leader
	Logger  *slog.Logger
	Metrics prometheus.Registerer
}

// Controller keeps statuses true while it leads. See [New].
type Controller struct {
	leader     Leader
	log        *slog.Logger
	client     rest.Interface // of PodDefaults
	cluster    rest.Interface // of ClusterPodDefaults
	namespaces metadata.Getter
	events     kubernetes.Interface
	metrics    *metrics
	rules      rules
	pace       pace
}

// rules say what is wrong with objects. They are those of the webhook.
type rules struct {
	// check returns why the object can never work, and what is suspicious.
	check func(*object) (mistakes, warnings []string)
	// overlap returns the places where the two disagree, if both may select one pod.
	overlap func(a, b *object) []string
}

// pace says how often statuses are written.
type pace struct {
	// quiet is how long a change waits for others; patience is how long it does so at most
	// while there are always more.
	quiet, patience time.Duration
	// again is how long the second write for a generation waits after the first; each
	// further one waits four times as long, at most longest.
	again, longest time.Duration
	// compare is how long objects are compared before others get three times as long.
	compare time.Duration
	// writers are how many writes are under way at once.
	writers int
}

var defaultPace = pace{
	quiet: time.Second, patience: 10 * time.Second, again: 15 * time.Second, longest: 10 * time.Minute,
	compare: 10 * time.Millisecond, writers: 4,
}

// New prepares a controller; [Controller.Run] runs it. The credentials in config must
// be allowed to list and watch PodDefaults, ClusterPodDefaults and namespaces, to patch
// the status of the first two, and to create and patch events.
func New(config *rest.Config, options Options) (*Controller, error) {
	if options.Leader == nil || options.Logger == nil || options.Metrics == nil {
		return nil, errors.New("status: a leader, a logger and metrics are needed")
	}
	c := &Controller{leader: options.Leader, log: options.Logger.With("controller", Name), rules: webhookRules(), pace: defaultPace}
	var err error
	if c.client, err = cluster.Client(config, kubeflowv1alpha1.GroupVersion, kubeflowv1alpha1.AddToScheme); err != nil {
		return nil, fmt.Errorf("client for PodDefaults: %w", err)
	}
	if c.cluster, err = cluster.Client(config, sallyportv1alpha1.GroupVersion, sallyportv1alpha1.AddToScheme); err != nil {
		return nil, fmt.Errorf("client for ClusterPodDefaults: %w", err)
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for namespaces: %w", err)
	}
	c.namespaces = metadataClient.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	if c.events, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("client for events: %w", err)
	}
	c.metrics, err = newMetrics(options.Metrics)
	return c, err
}

// Run runs until the context ends. While another replica leads it does nothing, and
// keeps nothing. It returns no error: statuses are not worth an outage.
func (c *Controller) Run(ctx context.Context) error {
	cluster.WhileLeading(ctx, c.leader, c.lead)
	return nil
}

// lead keeps statuses true until the context ends.
func (c *Controller) lead(ctx context.Context) {
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: c.events.EventsV1()})
	defer broadcaster.Shutdown()
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil { // its sink is there
		c.log.Warn("there will be no events", "error", err)
	}
	e := newEpoch(c)
	e.recorder = broadcaster.NewRecorder(runtime.NewScheme(), Name)
	var running sync.WaitGroup
	running.Go(func() { c.reflect(ctx, "poddefaults", podDefaultsOf(c.client), &podDefaultStore{epoch: e}, e) })
	running.Go(func() {
		c.reflect(ctx, "clusterpoddefaults", clusterPodDefaultsOf(c.cluster), &podDefaultStore{epoch: e, cluster: true}, e)
	})
	running.Go(func() { c.reflect(ctx, "namespaces", c.listNamespaces(), &namespaceStore{e}, e) })
	running.Go(func() { e.compareAll(ctx) })
	for range c.pace.writers {
		running.Go(func() { e.write(ctx) })
	}
	<-ctx.Done()
	e.queue.ShutDown()
	running.Wait()
	c.metrics.reset()
}

func (c *Controller) listNamespaces() source {
	return source{
		example: &metav1.PartialObjectMetadata{},
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return c.namespaces.List(ctx, options)
		},
		watch: c.namespaces.Watch,
	}
}

// A source is where objects of one kind come from.
type source struct {
	example runtime.Object
	list    func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch   func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// reflect follows one kind of object. A kind that the API server does not have is one
// of which there are no objects.
func (c *Controller) reflect(ctx context.Context, what string, from source, to cache.ReflectorStore, e *epoch) {
	loaded := func() { e.loaded(what) }
	source := cluster.WithAbsent(&cache.ListWatch{ListWithContextFunc: from.list, WatchFuncWithContext: from.watch}, loaded)
	cluster.Reflector(Name+" "+what, c.log, time.Minute, source, from.example, cluster.WithLoaded(to, loaded)).RunWithContext(ctx)
}
