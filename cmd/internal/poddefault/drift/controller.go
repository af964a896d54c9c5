// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/internal/control"
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
	Watcher *source.Watcher
	// Leader decides which replica runs the controller.
	Leader  control.Leader
	Logger  *slog.Logger
	Metrics prometheus.Registerer
	// Asked returns for which pods the webhook is configured.
	Asked func() (Asked, error)
	// Board gets the reports.
	Board *Board
}

// Asked says for which pods a webhook is configured.
type Asked struct {
	// Namespaces and Pods select them by labels.
	Namespaces, Pods labels.Selector
	// Excludes is nil if there are no match conditions.
	Excludes Conditions
}

// Conditions are match conditions. The value is comparable, and another one if the conditions are others.
type Conditions interface {
	// Excludes reports whether a condition excludes a pod.
	Excludes(pod *corev1.Pod) bool
}

func (a Asked) equal(b Asked) bool {
	return a.Excludes == b.Excludes && a.Namespaces.String() == b.Namespaces.String() && a.Pods.String() == b.Pods.String()
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
	// look is the time between looks at the configuration.
	look time.Duration
	// late is how long reading all pods may take before the log says so.
	late time.Duration
}

var defaultPace = pace{quiet: time.Second, again: 5 * time.Second, look: 10 * time.Second, late: 30 * time.Second}

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
	control.WhileLeading(ctx, c.Leader, c.lead)
	return nil
}

// lead reports until the context ends. It reports nothing before all objects and pods
// are read.
func (c *Controller) lead(ctx context.Context) {
	if c.Watcher.WaitReady(ctx) != nil {
		return
	}
	defer c.Board.publish(nil)
	for c.count(ctx) {
	}
}

// count reports until the match conditions are others, which it then returns, or the context ends. They are about whole
// pods, which are not kept.
func (c *Controller) count(ctx context.Context) (again bool) {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asked, err := c.Asked()
	if err != nil {
		c.log.Error("the pods of the webhook are not known", "error", err)
		pause(ctx, c.pace.look)
		return ctx.Err() == nil
	}
	var excluded func(*corev1.Pod) bool
	if asked.Excludes != nil {
		excluded = asked.Excludes.Excludes
	}
	pods, err := store.Pods(c.config, c.log, meta.Recorded, meta.WorkloadOf, excluded)
	if err != nil {
		c.log.Error("there are no reports about drift", "error", err)
		return false
	}
	changed := make(chan struct{}, 1)
	wake := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	defer follow(c.Watcher, pods, wake)()
	running.Go(func() { pods.Run(ctx) })
	late := time.AfterFunc(c.pace.late, func() {
		c.log.Warn("pods are not read yet, so they are not counted (may this server list them? sallyport manifests --part rbac prints the permissions)")
	})
	defer late.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-pods.Synced():
	}
	late.Stop()
	for {
		began := time.Now()
		ends := c.report(ctx, pods, asked)
		took := time.Since(began)
		pause(ctx, max(c.pace.again, 50*took))
		now := c.await(ctx, changed, ends, asked)
		if ctx.Err() != nil {
			return false
		}
		if now.Excludes != asked.Excludes {
			return true
		}
		asked = now
		pause(ctx, c.pace.quiet)
	}
}

// await waits for a change, the end of an exemption, or another configuration than the one that was used, and returns the
// present one.
func (c *Controller) await(ctx context.Context, changed <-chan struct{}, ends time.Time, used Asked) Asked {
	var ended <-chan time.Time // never without exemptions
	if !ends.IsZero() {
		ended = time.After(time.Until(ends))
	}
	look := time.NewTicker(c.pace.look)
	defer look.Stop()
	for woken := false; ; {
		now, err := c.Asked()
		if err != nil {
			c.log.Error("the pods of the webhook are not known", "error", err)
			now = used
		}
		if woken || ctx.Err() != nil || !now.equal(used) {
			return now
		}
		select {
		case <-ctx.Done():
		case <-look.C:
		case <-changed:
			woken = true
		case <-ended:
			woken = true
		}
	}
}

// follow calls wake for each change until stop is called.
func follow(w *source.Watcher, pods *store.Store[*store.Pod], wake func()) (stop func()) {
	objects := store.Handler[*plan.Plan]{Changed: func([]store.Change[*plan.Plan]) { wake() }}
	removes := []func(){
		w.PodDefaults.Handle(objects), w.ClusterPodDefaults.Handle(objects),
		w.Namespaces.Handle(store.Handler[*store.Namespace]{Changed: func([]store.Change[*store.Namespace]) { wake() }}),
		w.ExemptionStore.Handle(store.Handler[*exempt.Record]{Changed: func([]store.Change[*exempt.Record]) { wake() }}),
		pods.Handle(store.Handler[*store.Pod]{Changed: func([]store.Change[*store.Pod]) { wake() }}),
	}
	return func() {
		for _, remove := range removes {
			remove()
		}
	}
}

// report counts all pods. It returns when an exemption ends that concerns one, or zero.
func (c *Controller) report(ctx context.Context, pods *store.Store[*store.Pod], asked Asked) (ends time.Time) {
	r := report(ctx, c.Watcher, pods.List(), func(namespace string, set map[string]string) bool {
		n := c.Watcher.Namespaces.Get(types.NamespacedName{Name: namespace})
		return n != nil && asked.Namespaces.Matches(n.Labels) && asked.Pods.Matches(labels.Set(set))
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
