// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	admissionregistrationac "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	"k8s.io/client-go/tools/cache"
)

const (
	mutatingKind   = "MutatingWebhookConfiguration"
	validatingKind = "ValidatingWebhookConfiguration"
)

// callTimeout is for one call of the API server.
const callTimeout = 30 * time.Second

// maxConflicts is how often a repair begins anew because the object changed
// under its hands.
const maxConflicts = 5

// client is the part of client-go's typed clients that keeping an object needs.
type client[Object metav1.Object, List runtime.Object, Wanted any] interface {
	Apply(ctx context.Context, wanted Wanted, opts metav1.ApplyOptions) (Object, error)
	Get(ctx context.Context, name string, opts metav1.GetOptions) (Object, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
	List(ctx context.Context, opts metav1.ListOptions) (List, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// kept is one of the two objects of a Keeper. It belongs to one goroutine, save
// for the informer's store.
type kept interface {
	kind() string
	// listerWatcher lists and watches the one object, and prototype is its type.
	listerWatcher() cache.ListerWatcher
	prototype() runtime.Object
	// pass makes the object what it should be. Without full, it does nothing if
	// the object in the cluster is still the one that the pass before left; without
	// repair, nothing if only others changed it.
	pass(ctx context.Context, wanted Configurations, live metav1.Object, full, repair bool) (outcome, error)
}

// outcome is what a pass did.
type outcome struct {
	called   bool // the API server was called
	written  bool // the object is not what it was; too much said if the first pass finds it right
	repaired bool // and only because others had changed it
	deferred bool // others changed it, and it was not put right
}

// object is the state of one kept object.
type object[Object interface {
	metav1.Object
	comparable
}, List runtime.Object, Wanted comparable] struct {
	name, kindName, manager string
	client                  client[Object, List, Wanted]
	new                     func() runtime.Object
	wanted                  func(Configurations) Wanted // zero if there should be none
	empty                   func() Wanted               // without webhooks
	at                      func(Wanted, string)        // applies only to that resource version
	webhooks                func(Object) int
	wait                    func(context.Context) error // before calls of the API server

	// What the last successful pass wanted (nil: no object) and left.
	passed          bool
	last            []byte
	resourceVersion string // empty: no object
}

func mutatingObject(o Options, wait func(context.Context) error) kept {
	return &object[*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.MutatingWebhookConfigurationList,
		*admissionregistrationac.MutatingWebhookConfigurationApplyConfiguration]{
		name: o.Config.Name, kindName: mutatingKind, manager: o.FieldManager, wait: wait,
		client: o.Client.MutatingWebhookConfigurations(),
		new:    func() runtime.Object { return &admissionregistrationv1.MutatingWebhookConfiguration{} },
		wanted: func(c Configurations) *admissionregistrationac.MutatingWebhookConfigurationApplyConfiguration {
			return c.Mutating
		},
		empty: o.Config.mutating,
		at: func(c *admissionregistrationac.MutatingWebhookConfigurationApplyConfiguration, version string) {
			c.WithResourceVersion(version)
		},
		webhooks: func(c *admissionregistrationv1.MutatingWebhookConfiguration) int { return len(c.Webhooks) },
	}
}

func validatingObject(o Options, wait func(context.Context) error) kept {
	return &object[*admissionregistrationv1.ValidatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfigurationList,
		*admissionregistrationac.ValidatingWebhookConfigurationApplyConfiguration]{
		name: o.Config.Name, kindName: validatingKind, manager: o.FieldManager, wait: wait,
		client: o.Client.ValidatingWebhookConfigurations(),
		new:    func() runtime.Object { return &admissionregistrationv1.ValidatingWebhookConfiguration{} },
		wanted: func(c Configurations) *admissionregistrationac.ValidatingWebhookConfigurationApplyConfiguration {
			return c.Validating
		},
		empty: o.Config.validating,
		at: func(c *admissionregistrationac.ValidatingWebhookConfigurationApplyConfiguration, version string) {
			c.WithResourceVersion(version)
		},
		webhooks: func(c *admissionregistrationv1.ValidatingWebhookConfiguration) int { return len(c.Webhooks) },
	}
}

func (o *object[Object, List, Wanted]) kind() string              { return o.kindName }
func (o *object[Object, List, Wanted]) prototype() runtime.Object { return o.new() }

// listerWatcher selects by name: that is all that the rights allow.
func (o *object[Object, List, Wanted]) listerWatcher() cache.ListerWatcher {
	selector := fields.OneTermEqualSelector("metadata.name", o.name).String()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			opts.FieldSelector = selector
			return o.client.List(ctx, opts)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			opts.FieldSelector = selector
			return o.client.Watch(ctx, opts)
		},
	}
}

func (o *object[Object, List, Wanted]) pass(ctx context.Context, all Configurations, live metav1.Object, full, repair bool) (outcome, error) {
	var none Wanted
	wanted := o.wanted(all)
	var data []byte
	if wanted != none {
		var err error
		if data, err = json.Marshal(wanted); err != nil {
			return outcome{}, err
		}
	}
	liveVersion := ""
	if live != nil {
		liveVersion = live.GetResourceVersion()
	}
	same := o.passed && bytes.Equal(data, o.last)
	untouched := liveVersion == o.resourceVersion
	switch {
	case same && untouched && !full:
		return outcome{}, nil
	case same && !untouched && !repair:
		return outcome{deferred: true}, nil
	}

	if err := o.wait(ctx); err != nil {
		return outcome{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out := outcome{called: true}
	var left string
	var err error
	switch {
	case wanted == none:
		left, out.written, err = o.remove(ctx)
	case same:
		left, out.written, err = o.repair(ctx, wanted)
	default:
		left, err = o.apply(ctx, wanted)
		out.written = left != o.resourceVersion
	}
	if err != nil {
		return outcome{called: true}, fmt.Errorf("%s %s: %w", o.kindName, o.name, err)
	}
	out.repaired = out.written && same
	o.passed, o.last, o.resourceVersion = true, data, left
	return out, nil
}

// apply returns the resource version that the object has now. Force takes over
// the fields in wanted from other managers, and only those. The API server does
// not write an object that is right already.
func (o *object[Object, List, Wanted]) apply(ctx context.Context, wanted Wanted) (string, error) {
	applied, err := o.client.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: o.manager, Force: true})
	if err != nil {
		return "", fmt.Errorf("server-side apply: %w", err)
	}
	return applied.GetResourceVersion(), nil
}

// repair applies what was applied before. It reads the object first and applies
// to that version of it, so that it is known whether others have changed
// something of ours, and not only something of their own. It returns the
// resource version that the object has now, and whether it wrote.
func (o *object[Object, List, Wanted]) repair(ctx context.Context, wanted Wanted) (left string, written bool, err error) {
	for range maxConflicts {
		var live Object
		live, err = o.client.Get(ctx, o.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			left, err = o.apply(ctx, wanted)
			return left, true, err
		}
		if err != nil {
			return "", false, fmt.Errorf("reading it before repair: %w", err)
		}
		o.at(wanted, live.GetResourceVersion())
		if left, err = o.apply(ctx, wanted); !apierrors.IsConflict(err) {
			return left, left != live.GetResourceVersion(), err
		}
	}
	return "", false, err
}

// remove takes the own webhooks out of the object, and then deletes it if it is
// an own one and nothing else is in it. It returns the resource version of what
// is left, if anything, and whether it wrote.
func (o *object[Object, List, Wanted]) remove(ctx context.Context) (left string, written bool, err error) {
	live, err := o.client.Get(ctx, o.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("reading it before removal: %w", err)
	case live.GetLabels()[ManagedByLabel] != ManagedByValue:
		return live.GetResourceVersion(), false, nil
	}
	rest, err := o.client.Apply(ctx, o.empty(), metav1.ApplyOptions{FieldManager: o.manager, Force: true})
	if err != nil {
		return "", false, fmt.Errorf("server-side apply without webhooks: %w", err)
	}
	version, uid := rest.GetResourceVersion(), rest.GetUID()
	if o.webhooks(rest) > 0 {
		return version, version != live.GetResourceVersion(), nil
	}
	err = o.client.Delete(ctx, o.name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	if err != nil && !apierrors.IsNotFound(err) {
		return "", false, fmt.Errorf("deletion: %w", err)
	}
	return "", true, nil
}
