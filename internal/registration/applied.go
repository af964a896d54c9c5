// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"

	"github.com/sallyport-io/sallyport/internal/kube/foreign"
	"github.com/sallyport-io/sallyport/internal/registration/ownership"
)

// client is the part of client-go's typed clients that is needed to manage an object.
type client[Object metav1.Object, List runtime.Object, Apply any] interface {
	Apply(ctx context.Context, desired Apply, opts metav1.ApplyOptions) (Object, error)
	Get(ctx context.Context, name string, opts metav1.GetOptions) (Object, error)
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (Object, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
	List(ctx context.Context, opts metav1.ListOptions) (List, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// applied is an object that is managed by server-side apply, and removed if it is not desired.
type applied[Object metav1.Object, List runtime.Object, Apply any] struct {
	objectName, kindName, manager string
	example                       runtime.Object
	client                        client[Object, List, Apply]
	desired                       func(desired) Apply         // zero if no object is desired
	at                            func(Apply, string) Apply   // makes the apply conditional on that resource version
	wait                          func(context.Context) error // rate-limits calls of the API server
	// shared is set for objects that may contain webhooks of other managers; nil if the
	// whole object is ours.
	shared *shared[Object, Apply]

	last
}

// shared is how webhook configurations are shared with other managers.
type shared[Object metav1.Object, Apply any] struct {
	empty     func() Apply // without webhooks
	webhooks  func(Object) []liveWebhook
	narrowing func(Object) []foreign.Webhook
	selectors func(Apply) []ownership.SelectorField
	refuse    bool                             // terms of other managers
	before    map[string]*metav1.LabelSelector // desired the last time
}

// last is the desired state and the result of the last reconciliation.
type last struct {
	done            bool
	data            []byte // nil: no object
	resourceVersion string // empty: no object
}

// isNone reports whether no object is desired. It compares interfaces: with the constraint
// comparable, the compiler would copy each method of applied for each kind of object.
func isNone[Apply any](desired Apply) bool {
	var none Apply
	return any(desired) == any(none)
}

func (a *applied[Object, List, Apply]) kind() string              { return a.kindName }
func (a *applied[Object, List, Apply]) name() string              { return a.objectName }
func (a *applied[Object, List, Apply]) prototype() runtime.Object { return a.example }

func (a *applied[Object, List, Apply]) forget() {
	a.done = false
	if a.shared != nil {
		a.shared.before = nil
	}
}

func (a *applied[Object, List, Apply]) listerWatcher() cache.ListerWatcher {
	return oneByName(a.objectName, a.client.List, a.client.Watch)
}

// oneByName lists and watches only the object with that name, as RBAC permits.
func oneByName[List runtime.Object](
	name string, list func(context.Context, metav1.ListOptions) (List, error), follow func(context.Context, metav1.ListOptions) (watch.Interface, error),
) cache.ListerWatcher {
	selector := fields.OneTermEqualSelector("metadata.name", name).String()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			opts.FieldSelector = selector
			return list(ctx, opts)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			opts.FieldSelector = selector
			return follow(ctx, opts)
		},
	}
}

// driftOf returns an error if an observed object is not as desired.
func driftOf(what string, desired any, observed metav1.Object, manager string) error {
	same, err := ownership.Holds(desired, observed)
	if err == nil && !same {
		err = fmt.Errorf("%s is not as desired; last changed by %s", what, lastManager(observed, manager))
	}
	return err
}

// upToDate reports whether nothing needs to be written given the same desired state as the
// last time, and the outcome.
func (l *last) upToDate(observed metav1.Object, repair bool, drift func() error) (outcome, bool) {
	version := ""
	if observed != nil {
		version = observed.GetResourceVersion()
	}
	switch {
	case version == l.resourceVersion:
		return outcome{}, true
	case drift() == nil:
		l.resourceVersion = version
		return outcome{}, true
	case !repair:
		return outcome{deferred: true}, true
	}
	return outcome{}, false
}

// ours reports whether an object contains something that we wrote and may remove.
func (a *applied[Object, List, Apply]) ours(observed metav1.Object) bool {
	return observed.GetLabels()[ManagedByLabel] == ManagedByValue &&
		slices.ContainsFunc(observed.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
			return entry.Manager == a.manager && (a.shared == nil || foreign.Owns(entry, "f:webhooks"))
		})
}

func (a *applied[Object, List, Apply]) drift(all desired, observed metav1.Object) error {
	desired := a.desired(all)
	switch {
	case isNone(desired) && (observed == nil || !a.ours(observed)):
		return nil
	case isNone(desired):
		return fmt.Errorf("%s %s still exists and is no longer desired", a.kindName, a.objectName)
	case observed == nil:
		return fmt.Errorf("%s %s does not exist", a.kindName, a.objectName)
	}
	defer a.adopt(desired, observed.(Object))()
	if err := driftOf(a.kindName+" "+a.objectName, desired, observed, a.manager); err != nil {
		return err
	}
	if terms := a.refused(observed); len(terms) > 0 {
		return fmt.Errorf("%s %s is narrowed: %s", a.kindName, a.objectName, foreign.List(terms))
	}
	return nil
}

// refused returns the foreign terms that are to be removed.
func (a *applied[Object, List, Apply]) refused(observed metav1.Object) []foreign.Term {
	if a.shared == nil || !a.shared.refuse {
		return nil
	}
	return foreignTermsOf(observed, a.manager)
}

// adopt adds to the desired state what other managers may have written to the observed
// object, until it is restored.
func (a *applied[Object, List, Apply]) adopt(desired Apply, observed Object) (restore func()) {
	if a.shared == nil {
		return func() {}
	}
	if a.shared.refuse {
		return own(a.shared.selectors(desired))
	}
	selectors := map[string]*metav1.LabelSelector{}
	for _, w := range a.shared.webhooks(observed) {
		for i, field := range selectorFields {
			selectors[ownership.SelectorField{Webhook: w.name, Field: field}.Key()] = w.selectors[i]
		}
	}
	return ownership.Adopt(a.manager, a.shared.selectors(desired), a.shared.before, observed, selectors)
}

func (a *applied[Object, List, Apply]) bundles(names map[string]bool, observed metav1.Object) [][]byte {
	if a.shared == nil {
		return nil
	}
	var out [][]byte
	for _, w := range a.shared.webhooks(observed.(Object)) {
		if names[w.name] && len(w.caBundle) > 0 {
			out = append(out, w.caBundle)
		}
	}
	return out
}

func (a *applied[Object, List, Apply]) reconcile(ctx context.Context, all desired, observed metav1.Object, full, repair bool) (outcome, error) {
	desired := a.desired(all)
	var data []byte
	before := map[string]*metav1.LabelSelector{}
	if !isNone(desired) {
		var err error
		if data, err = json.Marshal(desired); err != nil {
			return outcome{}, err
		}
		if a.shared != nil {
			for _, s := range a.shared.selectors(desired) {
				before[s.Key()] = ownership.Plain(*s.Value)
			}
		}
	}
	out, err := a.write(ctx, desired, data, func() error { return a.drift(all, observed) }, observed, full, repair)
	if err == nil && a.shared != nil {
		a.shared.before = before
	}
	return out, err
}

func (a *applied[Object, List, Apply]) write(
	ctx context.Context, desired Apply, data []byte, drift func() error, observed metav1.Object, full, repair bool,
) (outcome, error) {
	if isNone(desired) && observed == nil && a.resourceVersion == "" { // no object is known
		a.last = last{done: true}
		return outcome{}, nil
	}
	same := a.done && bytes.Equal(data, a.data)
	if same && !full {
		if out, done := a.upToDate(observed, repair, drift); done {
			return out, nil
		}
	}
	if err := a.wait(ctx); err != nil {
		return outcome{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out := outcome{called: true}
	var left, changedBy string
	var err error
	if isNone(desired) {
		if left, out.written, err = a.remove(ctx, nil); out.written {
			changedBy = lastManager(observed, a.manager)
		}
	} else {
		left, changedBy, err = a.put(ctx, desired)
		out.written = left != a.resourceVersion
	}
	if err != nil {
		return outcome{called: true}, fmt.Errorf("%s %s: %w", a.kindName, a.objectName, err)
	}
	if same {
		out.changedBy = changedBy
	}
	a.last = last{true, data, left}
	return out, nil
}

// put applies the desired state. It reads the object first and applies to that version, to
// preserve what other managers wrote and to detect whether they changed our fields, and not
// only their own. Force takes over only the fields in desired from other managers. The API
// server does not write an unchanged object. put returns the new resource version, and who
// had changed the object if it was not as desired.
func (a *applied[Object, List, Apply]) put(ctx context.Context, desired Apply) (left, changedBy string, err error) {
	err = retry.RetryOnConflict(atOnce, func() error {
		changedBy = ""
		observed, err := a.client.Get(ctx, a.objectName, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			changedBy = lastManager(nil, a.manager)
			a.at(desired, "")
		case err != nil:
			return fmt.Errorf("reading it before writing: %w", err)
		default:
			defer a.adopt(desired, observed)()
			same, err := ownership.Holds(desired, observed)
			if err != nil {
				return err
			}
			if !same || len(a.refused(observed)) > 0 {
				changedBy = lastManager(observed, a.manager)
			}
			a.at(desired, observed.GetResourceVersion())
		}
		applied, err := a.client.Apply(ctx, desired, metav1.ApplyOptions{FieldManager: a.manager, Force: true})
		if err != nil {
			return fmt.Errorf("server-side apply: %w", err)
		}
		left = applied.GetResourceVersion()
		if a.shared != nil && a.shared.refuse {
			left, err = a.removeConditions(ctx, applied)
		}
		return err
	})
	return left, changedBy, err
}

// atOnce is how often a write is retried because the object changed in the meantime.
var atOnce = wait.Backoff{Steps: 5}

// remove removes our part of the object, and deletes it if nothing else is left. It returns
// the resource version of the rest, if any, and whether it wrote.
func (a *applied[Object, List, Apply]) remove(ctx context.Context, dryRun []string) (left string, written bool, err error) {
	observed, err := a.client.Get(ctx, a.objectName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("reading it before removal: %w", err)
	case observed.GetLabels()[ManagedByLabel] != ManagedByValue, a.shared == nil && !a.ours(observed):
		return observed.GetResourceVersion(), false, nil
	}
	uid := observed.GetUID()
	only := &metav1.Preconditions{UID: &uid}
	if a.shared != nil {
		rest, err := a.client.Apply(ctx, a.shared.empty(), metav1.ApplyOptions{FieldManager: a.manager, Force: true, DryRun: dryRun})
		if err != nil {
			return "", false, fmt.Errorf("server-side apply without webhooks: %w", err)
		}
		version := rest.GetResourceVersion()
		if len(a.shared.webhooks(rest)) > 0 {
			return version, version != observed.GetResourceVersion(), nil
		}
		only.ResourceVersion = &version
	}
	err = a.client.Delete(ctx, a.objectName, metav1.DeleteOptions{DryRun: dryRun, Preconditions: only})
	if err != nil && !apierrors.IsNotFound(err) {
		return "", false, fmt.Errorf("deletion: %w", err)
	}
	return "", true, nil
}

// uninstall removes the object for good. It returns nil if there is no object.
func (a *applied[Object, List, Apply]) uninstall(ctx context.Context, dryRun []string) (*Removal, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	observed, err := a.client.Get(ctx, a.objectName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) { // or the kind does not exist, before Kubernetes 1.30
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading it before removal: %w", err)
	}
	removal := &Removal{Object: strings.ToLower(a.kindName) + ".admissionregistration.k8s.io/" + a.objectName, Action: Left}
	switch {
	case observed.GetLabels()[ManagedByLabel] != ManagedByValue:
		removal.Why = fmt.Sprintf("it does not have the label %s=%s", ManagedByLabel, ManagedByValue)
		return removal, nil
	case !slices.ContainsFunc(observed.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == a.manager }):
		removal.Why = fmt.Sprintf("the field manager %s owns no field of it; remove it with the tool that applied it", a.manager)
		return removal, nil
	}
	left, _, err := a.remove(ctx, dryRun)
	if err != nil {
		return nil, err
	}
	removal.Action = Deleted
	if left != "" {
		removal.Action, removal.Why = Changed, "its own webhooks are removed, those of others remain"
	}
	return removal, nil
}
