// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/internal/store"
)

// Name identifies the controller in configuration.
const Name = "poddefault-drift"

// PolicyRules are the rights that the controller needs in addition to the webhook's.
func PolicyRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}}}
}

// Options configure a controller.
type Options struct {
	// Watcher provides the objects. It must run.
	Watcher *poddefault.Watcher
	// Leader decides which replica runs the controller.
	Leader  store.Leader
	Logger  *slog.Logger
	Metrics prometheus.Registerer
	// Asked returns the selectors of the webhook: of namespaces, and of pods by their
	// labels. Its match conditions are not considered.
	Asked func() (namespaces, pods labels.Selector, err error)
	// Board gets the reports.
	Board *Board
}

// Controller counts pods while it leads. See [NewController].
type Controller struct {
	Options
	config *rest.Config
	log    *slog.Logger
	pace   pace
}

// pace limits how often pods are counted.
type pace struct {
	// quiet is how long a change waits for others.
	quiet time.Duration
	// again is the minimum time between two reports. It is at least 50 times as long as
	// the last report took.
	again time.Duration
	// late is how long reading all pods may take before the log says so.
	late time.Duration
}

var defaultPace = pace{quiet: time.Second, again: 5 * time.Second, late: 30 * time.Second}

// NewController prepares a controller. [Controller.Run] runs it. The credentials in
// config need the rights of [PolicyRules].
func NewController(config *rest.Config, options Options) (*Controller, error) {
	if options.Watcher == nil || options.Leader == nil || options.Logger == nil || options.Metrics == nil || options.Asked == nil || options.Board == nil {
		return nil, errors.New("drift: a watcher, a leader, a logger, metrics, selectors and a board are needed")
	}
	return &Controller{Options: options, config: config, log: options.Logger.With("controller", Name), pace: defaultPace},
		options.Metrics.Register(collector{options.Board})
}

// Run runs until the context ends. While another replica leads it does nothing and uses
// no memory. It never returns an error, because the webhook works without it.
func (c *Controller) Run(ctx context.Context) error {
	store.WhileLeading(ctx, c.Leader, c.lead)
	return nil
}

// lead reports until the context ends. It reports nothing before all objects and pods
// are read.
func (c *Controller) lead(ctx context.Context) {
	if c.Watcher.WaitReady(ctx) != nil {
		return
	}
	pods, err := store.Pods(c.config, c.log, poddefault.Recorded, poddefault.WorkloadOf)
	if err != nil {
		c.log.Error("there are no reports about drift", "error", err)
		return
	}
	defer c.Board.publish(nil)
	changed := make(chan struct{}, 1)
	wake := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	defer follow(c.Watcher, pods, wake)()
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { pods.Run(ctx) })
	late := time.AfterFunc(c.pace.late, func() {
		c.log.Warn("pods are not read yet, so they are not counted (may this server list them? sallyport manifests --part rbac prints the permissions)")
	})
	defer late.Stop()
	select {
	case <-ctx.Done():
		return
	case <-pods.Synced():
	}
	late.Stop()
	for {
		began := time.Now()
		ends := c.report(ctx, pods)
		took := time.Since(began)
		pause(ctx, max(c.pace.again, 50*took))
		var ended <-chan time.Time // never without exemptions
		if !ends.IsZero() {
			ended = time.After(time.Until(ends))
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-ended:
		}
		pause(ctx, c.pace.quiet)
	}
}

// follow calls wake for each change until stop is called.
func follow(w *poddefault.Watcher, pods *store.Store[*store.Pod], wake func()) (stop func()) {
	objects := store.Handler[*poddefault.Compiled]{Changed: func([]store.Change[*poddefault.Compiled]) { wake() }}
	removes := []func(){
		w.PodDefaults.Handle(objects), w.ClusterPodDefaults.Handle(objects),
		w.Namespaces.Handle(store.Handler[*store.Namespace]{Changed: func([]store.Change[*store.Namespace]) { wake() }}),
		pods.Handle(store.Handler[*store.Pod]{Changed: func([]store.Change[*store.Pod]) { wake() }}),
	}
	return func() {
		for _, remove := range removes {
			remove()
		}
	}
}

// report counts all pods. It returns when an exemption ends that concerns one, or zero.
func (c *Controller) report(ctx context.Context, pods *store.Store[*store.Pod]) (ends time.Time) {
	namespaces, selected, err := c.Asked()
	if err != nil {
		c.log.Error("the pods of the webhook are not known", "error", err)
		return ends
	}
	r := report(ctx, c.Watcher, pods.List(), func(namespace string, set map[string]string) bool {
		n := c.Watcher.Namespaces.Get(types.NamespacedName{Name: namespace})
		return n != nil && namespaces.Matches(n.Labels) && selected.Matches(labels.Set(set))
	})
	if ctx.Err() == nil {
		c.Board.publish(r)
	}
	return r.ends
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
