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

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/internal/store"
	"github.com/sallyport-io/sallyport/internal/store/control"
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
// no memory.
func (c *Controller) Run(ctx context.Context) error {
	frame := control.Frame{Leader: c.Leader, Log: c.log, Ready: c.Watcher.WaitReady}
	return frame.Run(ctx, func(ctx context.Context, t *control.Term) {
		t.Go(func() { control.Repeat(ctx, func() time.Duration { return c.count(ctx) }) })
		t.AtEnd(func() { c.Board.publish(nil) })
	})
}

// count reports until the match conditions are others, or the context ends. They are about whole
// pods, which are not kept. It returns when to begin again.
func (c *Controller) count(ctx context.Context) (again time.Duration) {
	asked, err := c.Asked()
	if err != nil {
		c.log.Error("the pods of the webhook are not known", "error", err)
		return c.pace.look
	}
	var excluded func(*corev1.Pod) bool
	if asked.Excludes != nil {
		excluded = asked.Excludes.Excludes
	}
	pods, err := store.Pods(c.config, c.log, meta.Recorded, meta.WorkloadOf, excluded)
	if err != nil {
		c.log.Error("there are no reports about drift", "error", err)
		return control.Never
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &reporter{Controller: c, pods: pods, asked: asked, others: cancel}
	r.queue = control.NewController(c.pace.look, c.pace.look, r.reconcile)
	for _, remove := range r.follow() {
		defer remove()
	}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { pods.Run(ctx) })
	late := time.AfterFunc(c.pace.late, func() {
		c.log.Warn("pods are not read yet, so they are not counted (may this server list them? sallyport manifests --part rbac prints the permissions)")
	})
	defer late.Stop()
	select {
	case <-ctx.Done():
		r.queue.ShutDown()
		return 0
	case <-pods.Synced():
	}
	late.Stop()
	r.queue.Enqueue(toReport, 0)
	r.queue.Enqueue(toLook, c.pace.look)
	r.queue.Run(ctx, 1)
	return 0
}

// A task is a key of a [reporter]: to report when something has changed, or to look whether the configuration has.
type task bool

const (
	toReport task = true
	toLook   task = false
)

// A reporter counts pods under the same match conditions.
type reporter struct {
	*Controller
	queue  *control.Controller[task]
	pods   *store.Store[*store.Pod]
	asked  Asked
	others func() // called when the match conditions are others
	next   time.Time
}

// follow enqueues a report after each change.
func (r *reporter) follow() (removes []func()) {
	changed := func() { r.queue.Enqueue(toReport, r.pace.quiet) }
	w := r.Watcher
	return []func(){
		w.PodDefaults.HandleAny(changed), w.ClusterPodDefaults.HandleAny(changed), w.Namespaces.HandleAny(changed),
		w.ExemptionStore.HandleAny(changed), r.pods.HandleAny(changed),
	}
}

// reconcile reports, and again when an exemption ends; or looks at the configuration.
func (r *reporter) reconcile(ctx context.Context, do task) (again time.Duration, err error) {
	if do == toLook {
		now, err := r.Asked()
		switch {
		case err != nil:
			r.log.Error("the pods of the webhook are not known", "error", err)
		case now.Excludes != r.asked.Excludes:
			r.others()
		case !now.equal(r.asked):
			r.asked = now
			r.queue.Enqueue(toReport, r.pace.quiet)
		}
		return r.pace.look, nil
	}
	began := time.Now()
	if wait := r.next.Sub(began); wait > 0 {
		return wait, nil
	}
	ends := r.report(ctx)
	r.next = time.Now().Add(max(r.pace.again, 50*time.Since(began)))
	if ends.IsZero() { // nothing is exempt
		return 0, nil
	}
	return max(time.Until(ends), time.Nanosecond), nil
}

// report counts all pods. It returns when an exemption ends that concerns one, or zero.
func (r *reporter) report(ctx context.Context) (ends time.Time) {
	result := report(ctx, r.Watcher, r.pods.List(), func(namespace string, set map[string]string) bool {
		n := r.Watcher.Namespaces.Get(types.NamespacedName{Name: namespace})
		return n != nil && r.asked.Namespaces.Matches(n.Labels) && r.asked.Pods.Matches(labels.Set(set))
	})
	if ctx.Err() == nil {
		r.Board.publish(result)
	}
	return result.ends
}
