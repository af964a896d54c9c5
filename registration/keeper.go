// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"bytes"
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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Keeper writes webhook configurations, and the conversion stanzas of
// CustomResourceDefinitions, and keeps them true: when definitions or the CA bundle
// change, when somebody edits or deletes the objects, and from time to time in any
// case. Others' fields stay as they are. Configurations without webhooks are
// deleted if they carry [ManagedByLabel] and hold nothing of others.
//
// When the definitions change, validating webhooks come a few seconds after mutating
// ones that are new with them, and go before them: what a validating webhook asks for,
// a mutating one may have to set.
//
// A webhook with an [admission.Backstop] fails closed until the policy that stands in for it is in
// force, and open from then on.
//
// A selector to which others added terms stays as they made it while ours still
// holds. Who changes what is ours sees it put right at once the first time; if they
// insist, the repairs wait longer and longer, up to 5 minutes, and an event, a
// metric and the log say so.
//
// Replicas with equal definitions and CA bundles may each run a Keeper: they
// write the same. Replicas that differ, as during an upgrade, would undo each
// other's work, slowly: let one lead then ([Options.Leading]). Nothing is removed when a Keeper ends, because a webhook
// must not go away while others serve it.
type Keeper struct {
	options Options
	metrics *metrics
	limiter *rate.Limiter
	notify  chan struct{}
	touched chan struct{} // an object in the cluster changed

	// The two halves differ in what they wait for.
	configurations, conversions, policies half
	staging                               staging  // of configurations
	backstop                              backstop // of a webhook

	mu      sync.Mutex // of watched
	watched []*watched
}

// half is one half of what a Keeper does, and how far it is.
type half struct {
	what     string
	caBundle func() ([]byte, error)

	mu       sync.Mutex
	inUse    bool
	written  []byte // the CA bundle that the objects have, if applied
	applied  bool
	err      error // of the last pass
	reported string
	// refused is why the API server does not take an object; nil once it took all.
	refused error
	taken   bool // it did, at least once
}

// watched is an object with what shows it as it is in the cluster.
type watched struct {
	kept
	half     *half
	informer cache.SharedIndexInformer
	stop     func()
	repair   repairs
	conflict conflict
}

// live is nil if there is no object. Before synced it is not known.
func (w *watched) live() (live metav1.Object, synced bool) {
	synced = w.informer.HasSynced()
	if item, ok, err := w.informer.GetStore().GetByKey(w.name()); err == nil && ok {
		live = item.(metav1.Object)
	}
	return live, synced
}

// NewKeeper reports every mistake in options at once. It calls neither Webhooks
// nor CABundle nor the API server.
func NewKeeper(options Options) (*Keeper, error) {
	if err := options.complete(); err != nil {
		return nil, fmt.Errorf("registration options: %w", err)
	}
	k := &Keeper{
		options:        options,
		limiter:        rate.NewLimiter(writesPerSecond, writesBurst),
		notify:         make(chan struct{}, 1),
		touched:        make(chan struct{}, 1),
		configurations: half{what: "webhook configurations", caBundle: options.CABundle, inUse: true},
		conversions:    half{what: "conversion stanzas", caBundle: options.ConversionCABundle},
		policies:       half{what: "the policy of the backstop and its binding", caBundle: options.CABundle, inUse: true},
	}
	var err error
	if k.metrics, err = newMetrics(options.Registry, func() bool { return k.Registered() == nil }, k.backstop.wanted.Load, k.backstop.inForce.Load); err != nil {
		return nil, fmt.Errorf("registration metrics: %w", err)
	}
	return k, nil
}

// Notify says that Webhooks or CABundle return something new. It does not block
// and may be called at any time, by any goroutine.
func (k *Keeper) Notify() { signal(k.notify) }

// Registered returns nil once the configurations and the conversion stanzas are
// there with the current CA bundle, written by this Keeper or by the leader;
// otherwise why not. It is fast and calls no API server.
//
// It is a status, not a gate: a server that is not registered yet may well be
// called, because of an older registration or of another replica's.
func (k *Keeper) Registered() error {
	return errors.Join(k.configurations.registered(), k.conversions.registered())
}

func (h *half) registered() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.inUse {
		return nil
	}
	caBundle, err := h.caBundle()
	switch {
	case err != nil:
		return fmt.Errorf("the CA bundle is not known yet: %w", err)
	case h.applied && bytes.Equal(caBundle, h.written):
		return nil
	case h.err != nil:
		return fmt.Errorf("%s are not written: %w", h.what, h.err)
	case h.applied:
		return fmt.Errorf("%s still have an older CA bundle", h.what)
	default:
		return fmt.Errorf("%s are not written yet", h.what)
	}
}

// Refused returns nil unless the API server refuses, as invalid, what this Keeper writes, and
// never took it: then no webhook of that configuration is called, unless an earlier
// version of it is there. It is fast and calls no API server.
func (k *Keeper) Refused() error {
	return errors.Join(k.configurations.refusal(), k.conversions.refusal())
}

func (h *half) refusal() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refused == nil {
		return nil
	}
	return fmt.Errorf("the API server refuses the %s: %w", h.what, h.refused)
}

// Published returns the CA bundles, PEM, that the API server trusts now for what
// this Keeper keeps: those in the own webhooks of the live configurations, and
// those in the conversion stanzas of the definitions. It calls no API server. The
// error says that not all objects have been seen yet.
func (k *Keeper) Published() ([][]byte, error) {
	names := map[string]bool{}
	for _, w := range k.options.Webhooks() {
		names[w.Name] = true
	}
	expected := map[string]bool{mutatingKind: true, validatingKind: true}
	if k.options.Conversions != nil {
		for _, c := range k.options.Conversions() {
			expected[definitionKind+" "+c.CRD] = true
		}
	}
	k.mu.Lock()
	all := slices.Clone(k.watched)
	k.mu.Unlock()
	var out [][]byte
	for _, w := range all {
		live, synced := w.live()
		if !synced {
			continue
		}
		delete(expected, w.kind())
		delete(expected, w.kind()+" "+w.name())
		if live != nil {
			out = append(out, w.bundles(names, live)...)
		}
	}
	if len(expected) > 0 {
		return nil, fmt.Errorf("not seen yet: %s", strings.Join(slices.Sorted(maps.Keys(expected)), ", "))
	}
	return out, nil
}

// Run keeps the configurations true until ctx ends, and then returns nil.
// Failures do not end it: they are logged, counted, and tried again. It must be
// called once only.
func (k *Keeper) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var watches sync.WaitGroup
	defer watches.Wait()
	defer cancel()
	for _, object := range []kept{mutatingObject(k.options, k.limiter.Wait), validatingObject(k.options, k.limiter.Wait)} {
		if err := k.watch(ctx, &watches, object, &k.configurations); err != nil {
			return err
		}
	}

	var (
		backoff = failures()
		recheck = k.nextRecheck()
		retry   time.Time // after an error or a deferred repair; zero if none is due
		failed  bool      // calls of the API server did
		full    bool
	)
	timer := time.NewTimer(0) // the first pass is due
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.notify:
		case <-k.touched:
			if failed && time.Now().Before(retry) {
				continue // the API server has just failed; the retry sees the change too
			}
		case <-timer.C:
		}
		if !time.Now().Before(recheck) {
			full, recheck = true, k.nextRecheck()
		}
		out := k.pass(ctx, &watches, full)
		if ctx.Err() != nil {
			return nil
		}
		retry, failed = out.repairAt, out.failed
		if out.err != nil || out.starting {
			if again := time.Now().Add(backoff.Step()); retry.IsZero() || again.Before(retry) || failed {
				retry = again
			}
		} else {
			full, backoff = false, failures()
		}
		if out.err != nil {
			k.options.Logger.Warn("webhooks cannot be registered, will try again",
				"error", out.err, "in", time.Until(retry).Round(time.Millisecond))
		}
		next := recheck
		if !retry.IsZero() && retry.Before(next) {
			next = retry
		}
		timer.Reset(time.Until(next))
	}
}

// result is that of a pass over all objects.
type result struct {
	err      error // what is to be tried again
	failed   bool  // because the API server was called in vain
	starting bool  // there is no CA bundle to register yet, as at each start
	repairAt time.Time
}

func (r *result) add(other result) {
	r.err = errors.Join(r.err, other.err)
	r.failed, r.starting = r.failed || other.failed, r.starting || other.starting
	if r.repairAt.IsZero() || !other.repairAt.IsZero() && other.repairAt.Before(r.repairAt) {
		r.repairAt = other.repairAt
	}
}

// pass makes all objects what they should be, and notes how that went.
func (k *Keeper) pass(ctx context.Context, watches *sync.WaitGroup, full bool) result {
	var out result
	if _, err := k.options.CABundle(); err != nil { // what Webhooks returns may not count yet
		out = k.notYet(&k.configurations, err)
		out.add(result{err: k.watchBackstop(ctx, watches, k.options.Webhooks())}) // it is seen by the time it counts
	} else {
		out = k.passConfigurations(ctx, watches, full)
	}
	if k.options.Conversions == nil {
		return out
	}
	conversions := k.options.Conversions()
	k.conversions.mu.Lock()
	k.conversions.inUse = len(conversions) > 0
	k.conversions.mu.Unlock()
	err := errors.Join(k.watchDefinitions(ctx, watches, conversions))
	if err != nil {
		out.add(result{err: err})
	}
	if len(conversions) > 0 {
		out.add(k.passHalf(ctx, &k.conversions, full, func(caBundle []byte) (wanted, error) {
			stanzas, err := BuildConversions(k.options.Config, conversions, caBundle)
			return wanted{conversions: stanzas}, err
		}))
	}
	return out
}

func (k *Keeper) passConfigurations(ctx context.Context, watches *sync.WaitGroup, full bool) result {
	webhooks, again := k.staging.next(time.Now(), k.options.Webhooks())
	out := result{err: k.watchBackstop(ctx, watches, webhooks)}
	webhooks, policies, settled, waiting := k.backstopState(webhooks)
	out.add(k.passHalf(ctx, &k.configurations, full, func(caBundle []byte) (wanted, error) {
		configurations, err := Build(k.options.Config, webhooks, caBundle)
		return wanted{Configurations: configurations}, err
	}))
	out.add(result{repairAt: again})
	if !out.starting {
		out.add(k.passBackstop(ctx, full, policies, waiting, out.err))
	}
	out.add(result{repairAt: settled})
	return out
}

// notYet notes that a half waits for its CA bundle.
func (k *Keeper) notYet(h *half, err error) result {
	err = fmt.Errorf("the CA bundle is not known yet: %w", err)
	if h.news(err) {
		k.options.Logger.Info("webhooks are not registered yet", "why", err)
	}
	h.note(nil, false, err)
	return result{starting: true}
}

func (k *Keeper) passHalf(ctx context.Context, h *half, full bool, build func(caBundle []byte) (wanted, error)) result {
	caBundle, err := h.caBundle()
	if err != nil {
		return k.notYet(h, err)
	}
	wanted, err := build(caBundle)
	if err != nil {
		h.note(nil, false, err)
		return result{err: err}
	}
	k.mu.Lock()
	all := slices.Clone(k.watched)
	k.mu.Unlock()
	var total result
	var errs, waiting []error
	for _, w := range all {
		if w.half != h {
			continue
		}
		out, err := k.passObject(ctx, w, wanted, full)
		switch {
		case err != nil:
			errs = append(errs, err)
			total.failed = true
		case out.waiting != nil:
			waiting = append(waiting, out.waiting)
		}
		if out.deferred {
			total.add(result{repairAt: w.repair.next()})
		}
	}
	total.err = errors.Join(errs...)
	pending := errors.Join(waiting...)
	if total.err == nil && pending != nil && h.news(pending) {
		k.options.Logger.Info("webhooks are not registered yet", "why", pending)
	}
	h.note(caBundle, pending != nil, errors.Join(total.err, pending))
	h.noteRefusal(errs, pending != nil)
	return total
}

func (k *Keeper) passObject(ctx context.Context, w *watched, wanted wanted, full bool) (outcome, error) {
	live, synced := w.live()
	if !k.options.Leading() {
		w.forget()
		if !synced {
			return outcome{waiting: fmt.Errorf("%s %s is not seen yet", w.kind(), w.name())}, nil
		}
		if err := w.observe(wanted, live); err != nil {
			return outcome{waiting: fmt.Errorf("%w; this server does not lead and leaves it to the one that does", err)}, nil
		}
		return outcome{}, nil
	}
	if w.half != &k.configurations && !synced {
		return outcome{waiting: fmt.Errorf("%s %s is not seen yet", w.kind(), w.name())}, nil
	}
	out, err := w.pass(ctx, wanted, live, full, full || !time.Now().Before(w.repair.next()))
	if out.called {
		k.metrics.applied(w.kind(), err)
	}
	if err != nil {
		return out, err
	}
	log := k.options.Logger.With("kind", w.kind(), "name", w.name())
	switch {
	case out.repaired:
		w.repair.done(time.Now())
		k.metrics.repairs.WithLabelValues(w.kind()).Inc()
		log.Warn("put right, somebody else had changed it", "manager", lastManager(live, k.options.FieldManager))
	case out.deferred:
		manager := lastManager(live, k.options.FieldManager)
		if w.conflict.isNew(live) {
			k.metrics.conflicts.WithLabelValues(w.kind()).Inc()
		}
		if w.conflict.due(time.Now()) {
			k.conflictEvent(w, live, manager)
			log.Warn("somebody else changes it again and again; repairs wait longer and longer", "manager", manager)
		}
		out.waiting = fmt.Errorf("%s %s: %s changes what is not theirs again and again; it is put right in a while", w.kind(), w.name(), manager)
	case out.written:
		log.Info("webhooks registered")
	}
	return out, nil
}

// watchDefinitions watches the definitions that are to be converted, and no others
// any more.
func (k *Keeper) watchDefinitions(ctx context.Context, watches *sync.WaitGroup, conversions []Conversion) error {
	missing := map[string]bool{}
	for _, c := range conversions {
		if c.Validate() == nil { // else the half says what is wrong
			missing[c.CRD] = true
		}
	}
	k.mu.Lock()
	k.watched = slices.DeleteFunc(k.watched, func(w *watched) bool {
		if w.half != &k.conversions {
			return false
		}
		if missing[w.name()] {
			delete(missing, w.name())
			return false
		}
		w.stop()
		k.options.Logger.Info("the conversion stanza is left as it is: it is not kept any more", "kind", w.kind(), "name", w.name())
		return true
	})
	k.mu.Unlock()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		errs = append(errs, k.watch(ctx, watches, &definition{
			objectName: name, manager: k.options.FieldManager, client: k.options.CRDs, wait: k.limiter.Wait,
		}, &k.conversions))
	}
	return errors.Join(errs...)
}

// watch begins to keep an object.
func (k *Keeper) watch(ctx context.Context, watches *sync.WaitGroup, object kept, h *half) error {
	informer, err := k.informer(object)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	watches.Go(func() { informer.RunWithContext(ctx) })
	watches.Go(func() { // an object that is not there is no event
		select {
		case <-ctx.Done():
		case <-informer.HasSyncedChecker().Done():
			signal(k.touched)
		}
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	k.watched = append(k.watched, &watched{kept: object, half: h, informer: informer, stop: cancel})
	return nil
}

// note keeps the result of a pass for Registered. What is pending is known not to
// be as it should be; after an error it is as it was.
func (h *half) note(caBundle []byte, pending bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
	switch {
	case pending:
		h.applied = false
	case err == nil:
		h.applied, h.written, h.reported = true, bytes.Clone(caBundle), ""
	}
}

// noteRefusal keeps for Refused what of the errors of a pass says that an object is
// invalid.
func (h *half) noteRefusal(errs []error, pending bool) {
	refused := slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) })
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case len(errs) == 0 && !pending:
		h.taken, h.refused = true, nil
	case len(refused) > 0 && !h.taken:
		h.refused = errors.Join(refused...)
	}
}

// news tells whether that was not what was reported last.
func (h *half) news(err error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reported == err.Error() {
		return false
	}
	h.reported = err.Error()
	return true
}

// informer says on k.touched that an object in the cluster changed, and its store
// holds it.
func (k *Keeper) informer(object kept) (cache.SharedIndexInformer, error) {
	informer := cache.NewSharedIndexInformerWithOptions(object.listerWatcher(), object.prototype(), cache.SharedIndexInformerOptions{})
	err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
		if apierrors.IsNotFound(err) && (object.kind() == policyKind || object.kind() == bindingKind) {
			return // before Kubernetes 1.30; what waits for it says so, once
		}
		if ctx.Err() == nil { // it tries again by itself, with a pause
			k.options.Logger.Warn("object cannot be watched", "kind", object.kind(), "error", err)
		}
	})
	if err != nil {
		return nil, err
	}
	if object.kind() == definitionKind {
		if err := informer.SetTransform(withoutSchemas); err != nil {
			return nil, err
		}
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { signal(k.touched) },
		UpdateFunc: func(any, any) { signal(k.touched) },
		DeleteFunc: func(any) { signal(k.touched) },
	})
	return informer, err
}

// lastManager names who changed the object last, apart from us.
func lastManager(live metav1.Object, us string) string {
	if live == nil {
		return "unknown, it was deleted"
	}
	name, last := "unknown", time.Time{}
	for _, entry := range live.GetManagedFields() {
		if entry.Manager != us && entry.Subresource == "" && entry.Time != nil && !entry.Time.Time.Before(last) {
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
