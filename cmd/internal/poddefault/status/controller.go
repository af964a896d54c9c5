// SPDX-License-Identifier: Apache-2.0

// Package status writes the status of PodDefaults and ClusterPodDefaults: whether they
// are valid, which others they conflict with, whether forms can offer them, and how many
// pods carry them. It also keeps their revisions, and moves the steps of rollouts. Only the leader writes, except for refusals, and no review waits for
// a status.
//
// Writes are rare: only if the status differs, after a quiet moment, and with growing
// delays for the same generation. Counts of pods are written at most once a minute for
// one object, and for few objects a second.
package status

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/compare"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/internal/store"
	"github.com/sallyport-io/sallyport/internal/store/control"
)

// Name identifies the controller in configuration.
const Name = "poddefault-status"

// Options configure a controller.
type Options struct {
	// Watcher provides the objects. It must run.
	Watcher *source.Watcher
	// Leader decides which replica runs the controller.
	Leader  control.Leader
	Logger  *slog.Logger
	Metrics prometheus.Registerer
	// Pods counts the pods of objects; nil if nobody does.
	Pods PodCounter
	// Room tells which objects have no room in the backstop; nil if there is none.
	Room Room
}

// A PodCounter counts the pods of objects. A ClusterPodDefault has no namespace.
type PodCounter interface {
	// Pods returns nil while the counts are not known.
	Pods(types.NamespacedName) *kubeflowv1alpha1.PodCounts
	// Handle calls changed with each object whose counts have changed, until remove is
	// called.
	Handle(changed func(types.NamespacedName)) (remove func())
}

// Room tells which objects have no room in the backstop.
type Room interface {
	// Omitted returns the namespaces in which an object has no room, sorted.
	Omitted(*plan.Plan) []string
	// HandleOmitted calls changed with each object for which Omitted has changed, until remove is called.
	HandleOmitted(changed func(types.NamespacedName)) (remove func())
}

// Controller reconciles statuses while it leads. See [poddefault.New].
type Controller struct {
	watcher                         *source.Watcher
	frame                           control.Frame
	pods                            PodCounter // may be nil
	room                            Room       // may be nil
	log                             *slog.Logger
	podDefaults, clusterPodDefaults rest.Interface
	clients                         kubernetes.Interface
	revisions                       *revision.Client
	metrics                         *metrics
	pace                            pace
	// overlap returns the places where two objects conflict if both select a pod.
	overlap func(a, b *plan.Plan) []string
}

// pace limits how often statuses are written.
type pace struct {
	// quiet is how long a change waits for others. Patience limits that wait if changes
	// keep coming.
	quiet, patience time.Duration
	// again is the delay between the first and second write for a generation. It
	// quadruples with each further write, up to longest.
	again, longest time.Duration
	// counts is the delay between a write and one that only changes counts of pods.
	// CountsPerSecond limits the latter for all objects.
	counts          time.Duration
	countsPerSecond float64
	// compare is how long comparisons run before they pause for three times as long.
	compare time.Duration
	// writers limits concurrent writes.
	writers int
	// health is how often pods with a revision that is rolled out are looked at.
	health time.Duration
}

var defaultPace = pace{
	quiet: time.Second, patience: 10 * time.Second, again: 15 * time.Second, longest: 10 * time.Minute,
	counts: time.Minute, countsPerSecond: 2,
	compare: 10 * time.Millisecond, writers: 4,
	health: 15 * time.Second,
}

// New prepares a controller. [Controller.Run] runs it. The credentials in config must
// have the rights of [PolicyRules].
func New(config *rest.Config, options Options) (*Controller, error) {
	if options.Watcher == nil || options.Leader == nil || options.Logger == nil || options.Metrics == nil {
		return nil, errors.New("status: a watcher, a leader, a logger and metrics are needed")
	}
	c := &Controller{
		watcher: options.Watcher, pods: options.Pods, room: options.Room, log: options.Logger.With("controller", Name),
		pace: defaultPace, overlap: compare.OfPlans,
	}
	// Nothing is written before all objects are read, because a subset has only some of the conflicts.
	c.frame = control.Frame{Leader: options.Leader, Log: c.log, Ready: c.watcher.WaitReady}
	var err error
	if c.podDefaults, err = store.Client(config, kubeflowv1alpha1.GroupVersion, kubeflowv1alpha1.AddToScheme); err != nil {
		return nil, fmt.Errorf("client for PodDefaults: %w", err)
	}
	clusterWide, err := store.Client(config, sallyportv1alpha1.GroupVersion, sallyportv1alpha1.AddToScheme)
	if err != nil {
		return nil, fmt.Errorf("client for ClusterPodDefaults and revisions: %w", err)
	}
	c.clusterPodDefaults, c.revisions = clusterWide, revision.NewClient(clusterWide)
	if c.clients, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("client for events and pods: %w", err)
	}
	c.metrics, err = newMetrics(options.Metrics)
	return c, err
}

// Run runs until the context ends. While another replica leads it only reports refusals.
func (c *Controller) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { control.Repeat(ctx, func() time.Duration { return c.reportRefusals(ctx) }) })
	return c.frame.Run(ctx, c.lead)
}

// lead reconciles statuses until the context ends.
func (c *Controller) lead(ctx context.Context, t *control.Term) {
	recorder, stop := control.Events(ctx, Name, c.clients.EventsV1(), c.log)
	r := newReconciler(c)
	r.recorder = recorder
	t.AtEnd(func() { c.metrics.conflicting.Set(0) }, stop)
	t.AtEnd(r.follow(c.watcher)...)
	t.Go(func() { r.compares.Run(ctx, 1) })
	t.Go(func() { r.writes.Run(ctx, c.pace.writers) })
	t.Go(func() { newRoller(c, recorder).run(ctx) })
}
