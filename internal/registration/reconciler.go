// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/sallyport-io/sallyport/internal/registration/pace"
)

// reconciler reconciles objects of the cluster with their desired state, and tracks its
// progress. There are three: for webhook configurations, for conversion stanzas, and for
// the policy of a backstop with its binding. Their differences are passed in.
type reconciler struct {
	what string // the objects, for messages
	// caBundle returns the CA bundle for the API server to trust. An error means that it is not known yet.
	caBundle func() ([]byte, error)
	// watch starts and stops watches as needed; may be nil.
	watch func(context.Context) error
	// target returns the desired state of the objects.
	target func(caBundle []byte) target
	// then, if not nil, is reconciled after this one.
	then *reconciler

	notified atomic.Bool // reconcile even if the API server has just failed

	// The following fields belong to the worker.
	backoff wait.Backoff
	recheck time.Time
	retry   time.Time // after an error or a deferred repair; zero if none is due
	failed  bool      // the last call of the API server failed
	full    bool      // apply even without apparent drift
	lastErr error

	mu       sync.Mutex
	inUse    bool
	written  []byte // the CA bundle that the objects have, if applied
	applied  bool
	err      error // of the last time
	reported string
	// refused is why the API server rejects an object as invalid, and forbidden why it does not
	// let us write it; nil once it accepted all.
	refused, forbidden error
	taken              bool // the API server accepted the objects at least once
}

func newReconciler(what string, caBundle func() ([]byte, error), target func([]byte) target) *reconciler {
	return &reconciler{
		what: what, caBundle: caBundle, target: target, backoff: pace.Failures(),
		watch: func(context.Context) error { return nil },
	}
}

// target is the current desired state of objects.
type target struct {
	desired desired
	until   time.Time // when it changes by itself; zero for never
	hold    bool      // the objects are left as they are
	err     error     // why it is not known
}

// result is the result of one reconciliation.
type result struct {
	err      error // to be retried
	failed   bool  // a call of the API server failed
	starting bool  // there is no CA bundle to register yet, as after each start
	again    time.Time
}

func (r *result) add(other result) {
	r.err = errors.Join(r.err, other.err)
	r.failed, r.starting = r.failed || other.failed, r.starting || other.starting
	if r.again.IsZero() || !other.again.IsZero() && other.again.Before(r.again) {
		r.again = other.again
	}
}

// schedule returns when to reconcile next.
func (r *reconciler) schedule(out result) time.Time {
	r.retry, r.failed, r.lastErr = out.again, out.failed, out.err
	if out.err != nil || out.starting {
		if again := time.Now().Add(r.backoff.Step()); r.retry.IsZero() || again.Before(r.retry) || out.failed {
			r.retry = again
		}
	} else {
		r.full, r.backoff = false, pace.Failures()
	}
	if !r.retry.IsZero() && r.retry.Before(r.recheck) {
		return r.retry
	}
	return r.recheck
}

// reconcile writes the desired objects, and records the result.
func (k *Controller) reconcile(ctx context.Context, r *reconciler) result {
	out := result{err: r.watch(ctx)}
	r.mu.Lock()
	inUse := r.inUse
	r.mu.Unlock()
	if !inUse {
		return out
	}
	caBundle, err := r.caBundle()
	if err != nil { // the inputs of the target may not be available yet
		err = fmt.Errorf("the CA bundle is not known yet: %w", err)
		k.report(r, err)
		r.note(nil, false, err)
		out.starting = true
		return out
	}
	t := r.target(caBundle)
	out.add(result{err: t.err, again: t.until})
	switch {
	case t.err != nil:
		r.note(nil, false, t.err)
	case !t.hold:
		out.add(k.reconcileObjects(ctx, r, caBundle, t.desired))
	}
	return out
}

func (k *Controller) reconcileObjects(ctx context.Context, r *reconciler, caBundle []byte, desired desired) result {
	var total result
	var errs, waiting []error
	for _, o := range k.all() {
		if o.reconciler != r {
			continue
		}
		out, err := k.reconcileObject(ctx, o, desired)
		switch {
		case err != nil:
			errs = append(errs, err)
			total.failed = true
		case out.waiting != nil:
			waiting = append(waiting, out.waiting)
		}
		if out.deferred {
			total.add(result{again: o.repair.Next()})
		}
	}
	total.err = errors.Join(errs...)
	pending := errors.Join(waiting...)
	if total.err == nil && pending != nil {
		k.report(r, pending)
	}
	r.note(caBundle, pending != nil, errors.Join(total.err, pending))
	r.noteRefusal(errs, pending != nil)
	return total
}

func (k *Controller) reconcileObject(ctx context.Context, o *object, desired desired) (outcome, error) {
	observed, synced := o.observed()
	if synced {
		k.noteForeign(o, desired, observed)
	}
	if !k.options.Leading() {
		o.forget()
		if !synced {
			return outcome{waiting: o.unseen()}, nil
		}
		if err := o.drift(desired, observed); err != nil {
			return outcome{waiting: fmt.Errorf("%w; this server is not the leader", err)}, nil
		}
		return outcome{}, nil
	}
	if o.reconciler != k.configurations && !synced {
		return outcome{waiting: o.unseen()}, nil
	}
	full := o.reconciler.full
	out, err := o.reconcile(ctx, desired, observed, full, full || !time.Now().Before(o.repair.Next()))
	if out.called {
		k.metrics.applied(o.kind(), err)
	}
	if err != nil {
		if apierrors.IsForbidden(err) && observed != nil && o.forbidden.due(time.Now()) {
			k.warn(o, observed, "RegistrationForbidden", "Write",
				"The server may not write this object, so it stays as it is. Give its service account the rules that the command manifests prints.")
		}
		return out, err
	}
	log := k.options.Logger.With("kind", o.kind(), "name", o.name())
	switch {
	case out.changedBy != "":
		o.repair.Done(time.Now())
		k.metrics.repairs.WithLabelValues(o.kind()).Inc()
		log.Warn("repaired after another client changed it", "manager", out.changedBy)
	case out.deferred:
		manager := lastManager(observed, k.options.FieldManager)
		if o.conflict.isNew(observed) {
			k.metrics.conflicts.WithLabelValues(o.kind()).Inc()
		}
		if o.conflict.due(time.Now()) {
			k.warn(o, observed, "RegistrationConflict", "Repair", fmt.Sprintf(
				"%s keeps changing fields that %s owns. Repairs are backing off. Let only one of them own these fields.", manager, k.options.FieldManager))
			log.Warn("another client keeps changing it; repairs back off", "manager", manager)
		}
		out.waiting = fmt.Errorf("%s %s: %s keeps changing fields it does not own; the next repair is deferred", o.kind(), o.name(), manager)
	case out.written:
		log.Info("webhooks registered")
	}
	return out, nil
}

// report logs each reason for waiting once.
func (k *Controller) report(r *reconciler, waiting error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reported != waiting.Error() {
		r.reported = waiting.Error()
		k.options.Logger.Info("webhooks are not registered yet", "why", waiting)
	}
}

func (r *reconciler) registered() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.inUse {
		return nil
	}
	caBundle, err := r.caBundle()
	switch {
	case err != nil:
		return fmt.Errorf("the CA bundle is not known yet: %w", err)
	case r.forbidden != nil:
		return r.rights()
	case r.applied && bytes.Equal(caBundle, r.written):
		return nil
	case r.err != nil:
		return fmt.Errorf("%s are not written: %w", r.what, r.err)
	case r.applied:
		return fmt.Errorf("%s still have an older CA bundle", r.what)
	default:
		return fmt.Errorf("%s are not written yet", r.what)
	}
}

// note records the result for Registered. Pending objects are known not to be in the desired
// state; after an error the state is unchanged.
func (r *reconciler) note(caBundle []byte, pending bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
	switch {
	case pending:
		r.applied = false
	case err == nil:
		r.applied, r.written, r.reported = true, bytes.Clone(caBundle), ""
	}
}

// noteRefusal records for Refused and Forbidden which errors will come again.
func (r *reconciler) noteRefusal(errs []error, pending bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(errs) == 0 && !pending {
		r.taken, r.refused, r.forbidden = true, nil, nil
		return
	}
	if refused := which(errs, isInvalid); refused != nil && !r.taken {
		r.refused = refused
	}
	if forbidden := which(errs, apierrors.IsForbidden); forbidden != nil {
		r.forbidden = forbidden
	}
}
