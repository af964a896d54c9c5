// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Keeper writes webhook configurations and keeps them true: when definitions or
// the CA bundle change, when somebody edits or deletes the objects, and from time
// to time in any case. Others' fields stay as they are. Objects without
// webhooks are deleted if they carry [ManagedByLabel] and hold nothing of others.
//
// Replicas with equal definitions and CA bundles may each run a Keeper: they
// write the same. Replicas that differ, as during an upgrade, would undo each
// other's work, slowly (repairs wait longer and longer): run the Keeper in the
// elected leader then. Nothing is removed when a Keeper ends, because a webhook
// must not go away while others serve it.
type Keeper struct {
	options Options
	objects []kept
	metrics *metrics
	notify  chan struct{}
	touched chan struct{} // an object in the cluster changed

	mu        sync.Mutex
	informers []cache.SharedIndexInformer // in the order of objects, once it runs
	caBundle  []byte                      // that the objects have, if applied
	applied   bool
	err       error // of the last pass
}

// NewKeeper reports every mistake in options at once. It calls neither Webhooks
// nor CABundle nor the API server.
func NewKeeper(options Options) (*Keeper, error) {
	if err := options.complete(); err != nil {
		return nil, fmt.Errorf("registration options: %w", err)
	}
	limiter := rate.NewLimiter(writesPerSecond, writesBurst)
	k := &Keeper{
		options: options,
		objects: []kept{mutatingObject(options, limiter.Wait), validatingObject(options, limiter.Wait)},
		notify:  make(chan struct{}, 1),
		touched: make(chan struct{}, 1),
	}
	var err error
	if k.metrics, err = newMetrics(options.Registry, func() bool { return k.Registered() == nil }); err != nil {
		return nil, fmt.Errorf("registration metrics: %w", err)
	}
	return k, nil
}

// Notify says that Webhooks or CABundle return something new. It does not block
// and may be called at any time, by any goroutine.
func (k *Keeper) Notify() { signal(k.notify) }

// Registered returns nil once the configurations have been written with the
// current CA bundle, otherwise why not. It is fast and calls no API server.
//
// It is a status, not a gate: a server that is not registered yet may well be
// called, because of an older registration or of another replica's.
func (k *Keeper) Registered() error {
	caBundle, err := k.options.CABundle()
	if err != nil {
		return fmt.Errorf("the CA bundle is not known yet: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.applied && bytes.Equal(caBundle, k.caBundle):
		return nil
	case k.err != nil:
		return fmt.Errorf("webhook configurations are not written: %w", k.err)
	case k.applied:
		return errors.New("webhook configurations still have an older CA bundle")
	default:
		return errors.New("webhook configurations are not written yet")
	}
}

// Run keeps the configurations true until ctx ends, and then returns nil.
// Failures do not end it: they are logged, counted, and tried again. It must be
// called once only.
func (k *Keeper) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var watches sync.WaitGroup
	defer watches.Wait()
	defer cancel()

	stores := make([]cache.Store, len(k.objects))
	for i, object := range k.objects {
		informer, err := k.informer(object)
		if err != nil {
			return err
		}
		stores[i] = informer.GetStore()
		k.mu.Lock()
		k.informers = append(k.informers, informer)
		k.mu.Unlock()
		watches.Go(func() { informer.RunWithContext(ctx) })
	}

	var (
		repair   repairs
		backoff  = failures()
		recheck  = k.nextRecheck()
		retry    time.Time // after an error or a deferred repair; zero if none is due
		full     bool
		deferred bool // what is to be retried is only a repair
	)
	timer := time.NewTimer(0) // the first pass is due
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.notify:
		case <-k.touched:
			if !retry.IsZero() && !deferred {
				continue // the API server has just failed; the retry sees the change too
			}
		case <-timer.C:
		}
		now := time.Now()
		if !k.options.Leading() {
			recheck = k.nextRecheck()
			timer.Reset(time.Until(recheck))
			continue
		}
		if !now.Before(recheck) {
			full, recheck = true, k.nextRecheck()
		}
		mayRepair := full || !now.Before(repair.next())

		out, err := k.pass(ctx, stores, full, mayRepair)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			retry, deferred = time.Now().Add(backoff.Step()), false
			k.options.Logger.Warn("webhook configurations cannot be written, will try again",
				"error", err, "in", time.Until(retry).Round(time.Millisecond))
		default:
			full, backoff, retry, deferred = false, failures(), time.Time{}, false
			if out.repaired {
				repair.done(time.Now())
			}
			if out.deferred {
				retry, deferred = repair.next(), true
			}
		}
		next := recheck
		if !retry.IsZero() && retry.Before(next) {
			next = retry
		}
		timer.Reset(time.Until(next))
	}
}

// pass makes all objects what they should be, and notes how that went.
func (k *Keeper) pass(ctx context.Context, stores []cache.Store, full, repair bool) (outcome, error) {
	var total outcome
	caBundle, err := k.options.CABundle()
	if err != nil {
		err = fmt.Errorf("the CA bundle is not known yet: %w", err)
		k.note(nil, err)
		return total, err
	}
	wanted, err := Build(k.options.Config, k.options.Webhooks(), caBundle)
	if err != nil {
		k.note(nil, err)
		return total, err
	}
	var errs []error
	for i, object := range k.objects {
		var live metav1.Object
		if item, ok, err := stores[i].GetByKey(k.options.Config.Name); err != nil {
			errs = append(errs, err)
			continue
		} else if ok {
			live = item.(metav1.Object)
		}
		out, err := object.pass(ctx, wanted, live, full, repair)
		if out.called {
			k.metrics.applied(object.kind(), err)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		log := k.options.Logger.With("kind", object.kind(), "name", k.options.Config.Name)
		switch {
		case out.repaired:
			k.metrics.repairs.WithLabelValues(object.kind()).Inc()
			log.Warn("webhook configuration put right, somebody else had changed it", "manager", k.lastManager(live))
		case out.written:
			log.Info("webhook configuration written")
		}
		total.repaired = total.repaired || out.repaired
		total.deferred = total.deferred || out.deferred
	}
	err = errors.Join(errs...)
	k.note(caBundle, err)
	return total, err
}

// note keeps the result of a pass for Registered.
func (k *Keeper) note(caBundle []byte, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.err = err
	if err == nil {
		k.applied, k.caBundle = true, bytes.Clone(caBundle)
	}
}

// informer says on k.touched that an object in the cluster changed, and its store
// holds it.
func (k *Keeper) informer(object kept) (cache.SharedIndexInformer, error) {
	informer := cache.NewSharedIndexInformerWithOptions(object.listerWatcher(), object.prototype(), cache.SharedIndexInformerOptions{})
	err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
		if ctx.Err() == nil { // it tries again by itself, with a pause
			k.options.Logger.Warn("webhook configuration cannot be watched", "kind", object.kind(), "error", err)
		}
	})
	if err != nil {
		return nil, err
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { signal(k.touched) },
		UpdateFunc: func(any, any) { signal(k.touched) },
		DeleteFunc: func(any) { signal(k.touched) },
	})
	return informer, err
}

// lastManager names who changed the object last, apart from this Keeper.
func (k *Keeper) lastManager(live metav1.Object) string {
	if live == nil {
		return "unknown, it was deleted"
	}
	name, last := "unknown", time.Time{}
	for _, entry := range live.GetManagedFields() {
		if entry.Manager != k.options.FieldManager && entry.Time != nil && !entry.Time.Time.Before(last) {
			name, last = entry.Manager, entry.Time.Time
		}
	}
	return name
}

func (k *Keeper) nextRecheck() time.Time {
	return time.Now().Add(k.options.Recheck + rand.N(k.options.Recheck/5+1))
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default: // one is waiting, and it will see everything
	}
}
