// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
)

// client is the part of client-go's typed clients that keeping an object needs.
type client[Object metav1.Object, List runtime.Object, Wanted any] interface {
	Apply(ctx context.Context, wanted Wanted, opts metav1.ApplyOptions) (Object, error)
	Get(ctx context.Context, name string, opts metav1.GetOptions) (Object, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
	List(ctx context.Context, opts metav1.ListOptions) (List, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// applied is an object that is written as a whole by server-side apply, and removed if it
// is not wanted.
type applied[Object metav1.Object, List runtime.Object, Wanted comparable] struct {
	objectName, kindName, manager string
	example                       runtime.Object
	client                        client[Object, List, Wanted]
	wanted                        func(wanted) Wanted         // zero if there should be none
	at                            func(Wanted, string) Wanted // applies only to that resource version
	wait                          func(context.Context) error // before calls of the API server

	last
}

func newApplied[Object metav1.Object, List runtime.Object, Wanted comparable](
	o Options, wait func(context.Context) error, kind string, example runtime.Object, client client[Object, List, Wanted],
	wanted func(wanted) Wanted, at func(Wanted, string) Wanted,
) applied[Object, List, Wanted] {
	return applied[Object, List, Wanted]{
		objectName: o.Config.Name, kindName: kind, manager: o.FieldManager, example: example,
		client: client, wanted: wanted, at: at, wait: wait,
	}
}

// last is what the last successful pass wanted and left.
type last struct {
	passed          bool
	data            []byte // nil: no object
	resourceVersion string // empty: no object
}

// unlike is what differs between kinds of objects that are applied.
type unlike[Object metav1.Object, Wanted any] interface {
	observe(wanted wanted, live metav1.Object) error
	// adopt takes into what is wanted what others may have written of the live object,
	// until it is restored.
	adopt(wanted Wanted, live Object) (restore func())
	// remove takes away what is ours. It returns the resource version of what is left,
	// if anything, and whether it wrote.
	remove(ctx context.Context, dryRun []string) (left string, written bool, err error)
}

func (a *applied[Object, List, Wanted]) kind() string              { return a.kindName }
func (a *applied[Object, List, Wanted]) name() string              { return a.objectName }
func (a *applied[Object, List, Wanted]) prototype() runtime.Object { return a.example }

func (a *applied[Object, List, Wanted]) listerWatcher() cache.ListerWatcher {
	return oneByName(a.objectName, a.client.List, a.client.Watch)
}

// oneByName lists and watches the object with that name alone: more the rights do not
// allow.
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

// asWanted is an error that says that the live object is not.
func asWanted(what string, wanted any, live metav1.Object, manager string) error {
	same, err := holds(wanted, live)
	if err == nil && !same {
		err = fmt.Errorf("%s is not as it should be; %s changed it last", what, lastManager(live, manager))
	}
	return err
}

// settled tells whether a pass that wants the same as the last one is done, and with which
// outcome.
func (l *last) settled(live metav1.Object, repair bool, observe func() error) (outcome, bool) {
	version := ""
	if live != nil {
		version = live.GetResourceVersion()
	}
	switch {
	case version == l.resourceVersion:
		return outcome{}, true
	case observe() == nil:
		l.resourceVersion = version
		return outcome{}, true
	case !repair:
		return outcome{deferred: true}, true
	}
	return outcome{}, false
}

// reconcile is the pass of an object that is applied; see kept.
func (a *applied[Object, List, Wanted]) reconcile(
	ctx context.Context, kind unlike[Object, Wanted], all wanted, live metav1.Object, full, repair bool,
) (outcome, error) {
	var none Wanted
	wanted := a.wanted(all)
	var data []byte
	if wanted != none {
		var err error
		if data, err = json.Marshal(wanted); err != nil {
			return outcome{}, err
		}
	}
	if wanted == none && live == nil && a.resourceVersion == "" { // none is known of
		a.last = last{passed: true}
		return outcome{}, nil
	}
	same := a.passed && bytes.Equal(data, a.data)
	if same && !full {
		if out, done := a.settled(live, repair, func() error { return kind.observe(all, live) }); done {
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
	if wanted == none {
		left, drifted, err = kind.remove(ctx, nil)
		out.written = drifted
	} else {
		left, drifted, err = a.put(ctx, kind, wanted)
		out.written = left != a.resourceVersion
	}
	if err != nil {
		return outcome{called: true}, fmt.Errorf("%s %s: %w", a.kindName, a.objectName, err)
	}
	out.repaired = drifted && same
	a.last = last{true, data, left}
	return out, nil
}

// put applies what is wanted. It reads the object first and applies to that version of it,
// so that what others may have written is kept, and so that it is known whether others have
// changed something of ours, and not only something of their own. Force takes over the
// fields in wanted from other managers, and only those. The API server does not write an
// object that is right already. It returns the resource version that the object has now, and
// whether it was not what is wanted.
func (a *applied[Object, List, Wanted]) put(ctx context.Context, kind unlike[Object, Wanted], wanted Wanted) (left string, drifted bool, err error) {
	err = retry.RetryOnConflict(atOnce, func() error {
		drifted = true
		live, err := a.client.Get(ctx, a.objectName, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			a.at(wanted, "")
		case err != nil:
			return fmt.Errorf("reading it before writing: %w", err)
		default:
			defer kind.adopt(wanted, live)()
			same, err := holds(wanted, live)
			if err != nil {
				return err
			}
			drifted = !same
			a.at(wanted, live.GetResourceVersion())
		}
		applied, err := a.client.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: a.manager, Force: true})
		if err != nil {
			return fmt.Errorf("server-side apply: %w", err)
		}
		left = applied.GetResourceVersion()
		return nil
	})
	return left, drifted, err
}

// atOnce is how often a write begins anew because the object changed under its hands.
var atOnce = wait.Backoff{Steps: 5}
