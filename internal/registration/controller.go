// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"

	"github.com/sallyport-io/sallyport/internal/registration/pace"
)

// Controller reconciles webhook configurations and the conversion stanzas of
// CustomResourceDefinitions: when definitions or the CA bundle change, when other clients
// edit or delete the objects, and periodically. Fields of other managers are preserved.
// Configurations without webhooks are deleted if they have [ManagedByLabel] and nothing of
// other managers.
//
// When the definitions change, new validating webhooks are added a few seconds after new
// mutating ones, and removed before them, because a mutating webhook may have to set what a
// validating one requires.
//
// A webhook with an [admission.Backstop] fails closed until its policy is in force, and
// open from then on.
//
// Terms that other managers add to a selector, and their match conditions, are preserved as
// long as ours still hold, and reported as an event, a metric and in the log, because they
// can switch a webhook off ([Options.RefuseForeignTerms] removes them).
//
// Drift of our fields is repaired immediately the first time; if another client keeps
// changing them, repairs back off up to 5 minutes, and an event, a metric and the log
// report it.
//
// Replicas with equal definitions and CA bundles may each run a Controller, since they write
// the same objects. Replicas that differ, as during an upgrade, would slowly revert each
// other, so let only a leader write ([Options.Leading]). Nothing is removed when a Controller
// stops, because other replicas may still serve the webhooks.
type Controller struct {
	options Options
	metrics *metrics
	limiter *rate.Limiter
	notify  chan struct{}
	queue   workqueue.TypedDelayingInterface[*reconciler] // while it runs

	configurations, conversions, policies *reconciler
	staging                               pace.Staging // of configurations
	backstop                              backstop     // of a webhook
	foreign                               foreignTerms

	watches sync.WaitGroup
	mu      sync.Mutex // of objects
	objects []*object
}

// NewController reports all problems of options. It does not call Webhooks, CABundle or the API server.
func NewController(options Options) (*Controller, error) {
	if err := options.complete(); err != nil {
		return nil, fmt.Errorf("registration options: %w", err)
	}
	k := &Controller{options: options, limiter: rate.NewLimiter(pace.WritesPerSecond, pace.WritesBurst), notify: make(chan struct{}, 1)}
	k.foreign.byKind, k.foreign.told = map[string]string{}, map[string]toldTerms{}
	k.policies = newReconciler("the policy of the backstop and its binding", noCABundle, k.policyTarget)
	k.configurations = newReconciler("webhook configurations", options.CABundle, k.configurationTarget)
	k.policies.inUse, k.configurations.inUse = true, true
	k.configurations.watch, k.configurations.then = k.watchBackstop, k.policies
	k.conversions = newReconciler("conversion stanzas", options.ConversionCABundle, k.conversionTarget)
	k.conversions.watch = k.watchDefinitions
	var err error
	if k.metrics, err = newMetrics(options.Registry, func() bool { return k.Registered() == nil }, k.backstop.wanted.Load, k.backstop.inForce.Load); err != nil {
		return nil, fmt.Errorf("registration metrics: %w", err)
	}
	return k, nil
}

// noCABundle is for objects without one.
func noCABundle() ([]byte, error) { return nil, nil }

// Notify signals that the result of Webhooks or CABundle has changed. It does not block and
// may be called at any time, by any goroutine.
func (k *Controller) Notify() { signal(k.notify) }

// Registered returns nil once the configurations and the conversion stanzas exist with the
// current CA bundle, written by this Controller or by the leader, and it may write them; otherwise
// the reason. It is fast and does not call the API server.
//
// It is a status, not a gate: a server that is not registered yet may be called because of
// an earlier registration or that of another replica.
func (k *Controller) Registered() error {
	return errors.Join(k.configurations.registered(), k.conversions.registered())
}

// Refused returns an error if the API server rejects an object of this Controller as invalid, or
// does not let it read or write it, and never accepted it: then no webhook of that
// configuration is called, unless an earlier version of it exists. Missing rights are no
// error while an object in the cluster has the current CA bundle, because then the API server
// calls this server anyway. It is fast and does not call the API server.
func (k *Controller) Refused() error {
	return errors.Join(k.refusal(k.configurations), k.refusal(k.conversions))
}

// Forbidden returns an error if the API server did not let this Controller write an object the
// last time it tried: what is in the cluster stays as it is until it has the rights. It is
// fast and does not call the API server.
func (k *Controller) Forbidden() error {
	var errs []error
	for _, r := range []*reconciler{k.configurations, k.conversions} {
		r.mu.Lock()
		errs = append(errs, r.rights())
		r.mu.Unlock()
	}
	return errors.Join(errs...)
}

// Published returns the PEM-encoded CA bundles that the API server currently trusts: those
// in our webhooks of the live configurations, and those in the conversion stanzas of the
// definitions. It does not call the API server. It returns an error until all objects have
// been observed.
func (k *Controller) Published() ([][]byte, error) {
	names := namesOf(k.options.Webhooks())
	expected := map[string]bool{mutatingKind: true, validatingKind: true}
	if k.options.Conversions != nil {
		for _, c := range k.options.Conversions() {
			expected[definitionKind+" "+c.CRD] = true
		}
	}
	var out [][]byte
	for _, o := range k.all() {
		observed, synced := o.observed()
		if !synced {
			continue
		}
		delete(expected, o.kind())
		delete(expected, o.kind()+" "+o.name())
		if observed != nil {
			out = append(out, o.bundles(names, observed)...)
		}
	}
	if len(expected) > 0 {
		return nil, fmt.Errorf("not seen yet: %s", strings.Join(slices.Sorted(maps.Keys(expected)), ", "))
	}
	return out, nil
}

// Run reconciles the configurations until ctx ends, and then returns nil. Failures are
// logged, counted and retried. It must be called only once.
func (k *Controller) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer k.watches.Wait()
	defer cancel()
	k.queue = workqueue.NewTypedDelayingQueue[*reconciler]()
	context.AfterFunc(ctx, k.queue.ShutDown)
	for _, o := range []managed{mutatingObject(k.options, k.limiter.Wait), validatingObject(k.options, k.limiter.Wait)} {
		if err := k.watch(ctx, o, k.configurations); err != nil {
			return err
		}
	}
	reconcilers := []*reconciler{k.configurations}
	if k.options.Conversions != nil {
		reconcilers = append(reconcilers, k.conversions)
	}
	for _, r := range reconcilers {
		r.recheck = k.nextRecheck()
		k.queue.Add(r)
	}
	k.policies.recheck = k.nextRecheck()
	k.watches.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-k.notify:
			}
			for _, r := range reconcilers {
				r.notified.Store(true)
				k.queue.Add(r)
			}
		}
	})
	for {
		r, down := k.queue.Get()
		if down {
			return nil
		}
		k.process(ctx, r)
		k.queue.Done(r)
	}
}

// process reconciles, and queues the reconciler for the next time.
func (k *Controller) process(ctx context.Context, r *reconciler) {
	if ctx.Err() != nil {
		return
	}
	notified := r.notified.Swap(false)
	if wait := time.Until(r.retry); r.failed && wait > 0 && !notified {
		k.queue.AddAfter(r, wait) // the API server has just failed; the retry sees the change too
		return
	}
	if !time.Now().Before(r.recheck) {
		r.full, r.recheck = true, k.nextRecheck()
	}
	out := k.reconcile(ctx, r)
	if ctx.Err() != nil {
		return
	}
	next := r.schedule(out)
	if out.err != nil {
		k.options.Logger.Warn("webhooks cannot be registered, will try again",
			"error", out.err, "in", time.Until(r.retry).Round(time.Millisecond))
	}
	k.queue.AddAfter(r, time.Until(next))
	if r.then != nil && !out.starting {
		k.queue.Add(r.then)
	}
}

func (k *Controller) nextRecheck() time.Time {
	return time.Now().Add(k.options.Recheck + rand.N(k.options.Recheck/5+1))
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default: // one is already queued
	}
}
