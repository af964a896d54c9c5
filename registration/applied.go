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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
)

// client is the part of client-go's typed clients that managing an object needs.
type client[Object metav1.Object, List runtime.Object, Apply any] interface {
	Apply(ctx context.Context, desired Apply, opts metav1.ApplyOptions) (Object, error)
	Get(ctx context.Context, name string, opts metav1.GetOptions) (Object, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
	List(ctx context.Context, opts metav1.ListOptions) (List, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// applied is an object that is written as a whole by server-side apply, and removed if it
// is not desired.
type applied[Object metav1.Object, List runtime.Object, Apply comparable] struct {
	objectName, kindName, manager string
	example                       runtime.Object
	client                        client[Object, List, Apply]
	desired                       func(desired) Apply         // zero if there should be none
	at                            func(Apply, string) Apply   // applies only to that resource version
	wait                          func(context.Context) error // before calls of the API server
	// shared is what an object has that may hold webhooks of others; nil if all of it is
	// ours.
	shared *shared[Object, Apply]

	last
}

// shared is of webhook configurations.
type shared[Object metav1.Object, Apply any] struct {
	empty     func() Apply // without webhooks
	webhooks  func(Object) []liveWebhook
	selectors func(Apply) []selectorField
	before    map[string]*metav1.LabelSelector // what was desired the last time
}

// last is what was desired and left the last time.
type last struct {
	done            bool
	data            []byte // nil: no object
	resourceVersion string // empty: no object
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

// oneByName lists and watches the object with that name: the rights allow no more.
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

// driftOf is an error that says that an observed object is not as desired; nil if it is.
func driftOf(what string, desired any, observed metav1.Object, manager string) error {
	same, err := holds(desired, observed)
	if err == nil && !same {
		err = fmt.Errorf("%s is not as it should be; %s changed it last", what, lastManager(observed, manager))
	}
	return err
}

// settled tells whether there is nothing to write, if the same is desired as the last
// time, and with which outcome.
func (l *last) settled(observed metav1.Object, repair bool, drift func() error) (outcome, bool) {
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

// ours tells whether an object holds something that we wrote and may remove.
func (a *applied[Object, List, Apply]) ours(observed metav1.Object) bool {
	return observed.GetLabels()[ManagedByLabel] == ManagedByValue &&
		slices.ContainsFunc(observed.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
			return entry.Manager == a.manager && (a.shared == nil || owns(entry, "f:webhooks"))
		})
}

func (a *applied[Object, List, Apply]) drift(all desired, observed metav1.Object) error {
	desired := a.desired(all)
	var none Apply
	switch {
	case desired == none && (observed == nil || !a.ours(observed)):
		return nil
	case desired == none:
		return fmt.Errorf("%s %s is still there, and not wanted any more", a.kindName, a.objectName)
	case observed == nil:
		return fmt.Errorf("%s %s does not exist", a.kindName, a.objectName)
	}
	defer a.adopt(desired, observed.(Object))()
	return driftOf(a.kindName+" "+a.objectName, desired, observed, a.manager)
}

// adopt takes into what is desired what others may have written of the observed object,
// until it is restored.
func (a *applied[Object, List, Apply]) adopt(desired Apply, observed Object) (restore func()) {
	if a.shared == nil {
		return func() {}
	}
	selectors := map[string]*metav1.LabelSelector{}
	for _, w := range a.shared.webhooks(observed) {
		for i, field := range selectorFields {
			selectors[selectorField{webhook: w.name, field: field}.key()] = w.selectors[i]
		}
	}
	return adopt(a.manager, a.shared.selectors(desired), a.shared.before, observed, selectors)
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
	var none Apply
	desired := a.desired(all)
	var data []byte
	before := map[string]*metav1.LabelSelector{}
	if desired != none {
		var err error
		if data, err = json.Marshal(desired); err != nil {
			return outcome{}, err
		}
		if a.shared != nil {
			for _, s := range a.shared.selectors(desired) {
				before[s.key()] = plain(*s.value)
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
	var none Apply
	if desired == none && observed == nil && a.resourceVersion == "" { // none is known of
		a.last = last{done: true}
		return outcome{}, nil
	}
	same := a.done && bytes.Equal(data, a.data)
	if same && !full {
		if out, done := a.settled(observed, repair, drift); done {
			return out, nil
		}
	}
	if err := a.wait(ctx); err != nil {
		return outcome{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out := outcome{called: true}
	var left string
	var drifted bool
	var err error
	if desired == none {
		left, drifted, err = a.remove(ctx, nil)
		out.written = drifted
	} else {
		left, drifted, err = a.put(ctx, desired)
		out.written = left != a.resourceVersion
	}
	if err != nil {
		return outcome{called: true}, fmt.Errorf("%s %s: %w", a.kindName, a.objectName, err)
	}
	out.repaired = drifted && same
	a.last = last{true, data, left}
	return out, nil
}

// put applies what is desired. It reads the object first and applies to that version of it,
// so that what others may have written is kept, and so that it is known whether others have
// changed something of ours, and not only something of their own. Force takes over the
// fields in desired from other managers, and only those. The API server does not write an
// object that is right already. It returns the resource version that the object has now, and
// whether it was not as desired.
func (a *applied[Object, List, Apply]) put(ctx context.Context, desired Apply) (left string, drifted bool, err error) {
	err = retry.RetryOnConflict(atOnce, func() error {
		drifted = true
		observed, err := a.client.Get(ctx, a.objectName, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			a.at(desired, "")
		case err != nil:
			return fmt.Errorf("reading it before writing: %w", err)
		default:
			defer a.adopt(desired, observed)()
			same, err := holds(desired, observed)
			if err != nil {
				return err
			}
			drifted = !same
			a.at(desired, observed.GetResourceVersion())
		}
		applied, err := a.client.Apply(ctx, desired, metav1.ApplyOptions{FieldManager: a.manager, Force: true})
		if err != nil {
			return fmt.Errorf("server-side apply: %w", err)
		}
		left = applied.GetResourceVersion()
		return nil
	})
	return left, drifted, err
}

// atOnce is how often a write begins again because the object changed meanwhile.
var atOnce = wait.Backoff{Steps: 5}

// remove takes out what is ours, and deletes the object if nothing else is in it. It
// returns the resource version of what is left, if anything, and whether it wrote.
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

// uninstall is [applied.remove] for good. It returns nil if there is no object.
func (a *applied[Object, List, Apply]) uninstall(ctx context.Context, dryRun []string) (*Removal, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	observed, err := a.client.Get(ctx, a.objectName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) { // or its kind is not there, before Kubernetes 1.30
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading it before removal: %w", err)
	}
	removal := &Removal{Object: strings.ToLower(a.kindName) + ".admissionregistration.k8s.io/" + a.objectName, Action: Left}
	switch {
	case observed.GetLabels()[ManagedByLabel] != ManagedByValue:
		removal.Why = fmt.Sprintf("it does not carry the label %s=%s", ManagedByLabel, ManagedByValue)
		return removal, nil
	case !slices.ContainsFunc(observed.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == a.manager }):
		removal.Why = fmt.Sprintf("the field manager %s owns nothing of it; whoever applied it removes it", a.manager)
		return removal, nil
	}
	left, _, err := a.remove(ctx, dryRun)
	if err != nil {
		return nil, err
	}
	removal.Action = Deleted
	if left != "" {
		removal.Action, removal.Why = Changed, "own webhooks are removed, those of others are still in it"
	}
	return removal, nil
}
