// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsac "k8s.io/apiextensions-apiserver/pkg/client/applyconfiguration/apiextensions/v1"
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

// kept is an object of a Keeper. It belongs to one goroutine, save for the
// informer's store and for bundles.
type kept interface {
	kind() string
	name() string
	// listerWatcher lists and watches the one object, and prototype is its type.
	listerWatcher() cache.ListerWatcher
	prototype() runtime.Object
	// observe tells whether the live object, nil if there is none, is as wanted; if
	// not, the error says so.
	observe(wanted wanted, live metav1.Object) error
	// pass makes the object what it should be. Without full, it does nothing if
	// what is wanted is what it was and still holds; without repair, nothing if only
	// others changed it.
	pass(ctx context.Context, wanted wanted, live metav1.Object, full, repair bool) (outcome, error)
	// forget says that others may have written the object in the place of this
	// Keeper since the pass before.
	forget()
	// uninstall removes what is ours; nil if there is no object.
	uninstall(ctx context.Context, dryRun []string) (*Removal, error)
	// bundles are the CA bundles in what is ours of the live object.
	bundles(names map[string]bool, live metav1.Object) [][]byte
}

// wanted is all that a Keeper wants, or half of it.
type wanted struct {
	Configurations
	policies    Policies
	conversions map[string]*apiextensionsac.CustomResourceDefinitionApplyConfiguration
}

// outcome is what a pass did.
type outcome struct {
	called   bool  // the API server was called
	written  bool  // the object is not what it was; too much said if the first pass finds it right
	repaired bool  // and only because others had changed it
	deferred bool  // others changed it, and it was not put right
	waiting  error // why it cannot be right before something else changes
}

// object is the state of one kept configuration.
type object[Object interface {
	metav1.Object
	comparable
}, List runtime.Object, Wanted comparable] struct {
	objectName, kindName, manager string
	client                        client[Object, List, Wanted]
	new                           func() runtime.Object
	wanted                        func(wanted) Wanted  // zero if there should be none
	empty                         func() Wanted        // without webhooks
	at                            func(Wanted, string) // applies only to that resource version
	webhooks                      func(Object) []liveWebhook
	selectors                     func(Wanted) []selectorField
	wait                          func(context.Context) error // before calls of the API server

	// What the last successful pass wanted (nil: no object) and left.
	passed          bool
	last            []byte
	before          map[string]*metav1.LabelSelector
	resourceVersion string // empty: no object
}

// liveWebhook is what has to be known of a webhook in the cluster.
type liveWebhook struct {
	name      string
	caBundle  []byte
	selectors [2]*metav1.LabelSelector // in the order of selectorFields
}

var selectorFields = [2]string{"namespaceSelector", "objectSelector"}

func mutatingObject(o Options, wait func(context.Context) error) kept {
	return &object[*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.MutatingWebhookConfigurationList,
		*admissionregistrationac.MutatingWebhookConfigurationApplyConfiguration]{
		objectName: o.Config.Name, kindName: mutatingKind, manager: o.FieldManager, wait: wait,
		client: o.Client.MutatingWebhookConfigurations(),
		new:    func() runtime.Object { return &admissionregistrationv1.MutatingWebhookConfiguration{} },
		wanted: func(c wanted) *admissionregistrationac.MutatingWebhookConfigurationApplyConfiguration {
			return c.Mutating
		},
		empty: o.Config.mutating,
		at: func(c *admissionregistrationac.MutatingWebhookConfigurationApplyConfiguration, version string) {
			c.WithResourceVersion(version)
		},
		webhooks: func(c *admissionregistrationv1.MutatingWebhookConfiguration) []liveWebhook {
			var out []liveWebhook
			for _, w := range c.Webhooks {
				out = append(out, liveWebhook{w.Name, w.ClientConfig.CABundle, [2]*metav1.LabelSelector{w.NamespaceSelector, w.ObjectSelector}})
			}
			return out
		},
		selectors: func(c *admissionregistrationac.MutatingWebhookConfigurationApplyConfiguration) []selectorField {
			var out []selectorField
			for i := range c.Webhooks {
				w := &c.Webhooks[i]
				out = append(out, selectorField{*w.Name, selectorFields[0], &w.NamespaceSelector}, selectorField{*w.Name, selectorFields[1], &w.ObjectSelector})
			}
			return out
		},
	}
}

func validatingObject(o Options, wait func(context.Context) error) kept {
	return &object[*admissionregistrationv1.ValidatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfigurationList,
		*admissionregistrationac.ValidatingWebhookConfigurationApplyConfiguration]{
		objectName: o.Config.Name, kindName: validatingKind, manager: o.FieldManager, wait: wait,
		client: o.Client.ValidatingWebhookConfigurations(),
		new:    func() runtime.Object { return &admissionregistrationv1.ValidatingWebhookConfiguration{} },
		wanted: func(c wanted) *admissionregistrationac.ValidatingWebhookConfigurationApplyConfiguration {
			return c.Validating
		},
		empty: o.Config.validating,
		at: func(c *admissionregistrationac.ValidatingWebhookConfigurationApplyConfiguration, version string) {
			c.WithResourceVersion(version)
		},
		webhooks: func(c *admissionregistrationv1.ValidatingWebhookConfiguration) []liveWebhook {
			var out []liveWebhook
			for _, w := range c.Webhooks {
				out = append(out, liveWebhook{w.Name, w.ClientConfig.CABundle, [2]*metav1.LabelSelector{w.NamespaceSelector, w.ObjectSelector}})
			}
			return out
		},
		selectors: func(c *admissionregistrationac.ValidatingWebhookConfigurationApplyConfiguration) []selectorField {
			var out []selectorField
			for i := range c.Webhooks {
				w := &c.Webhooks[i]
				out = append(out, selectorField{*w.Name, selectorFields[0], &w.NamespaceSelector}, selectorField{*w.Name, selectorFields[1], &w.ObjectSelector})
			}
			return out
		},
	}
}

func (o *object[Object, List, Wanted]) kind() string              { return o.kindName }
func (o *object[Object, List, Wanted]) name() string              { return o.objectName }
func (o *object[Object, List, Wanted]) prototype() runtime.Object { return o.new() }
func (o *object[Object, List, Wanted]) forget()                   { o.passed, o.before = false, nil }

// listerWatcher selects by name: that is all that the rights allow.
func (o *object[Object, List, Wanted]) listerWatcher() cache.ListerWatcher {
	return oneByName(o.objectName, o.client.List, o.client.Watch)
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

func (o *object[Object, List, Wanted]) observe(all wanted, live metav1.Object) error {
	wanted := o.wanted(all)
	var none Wanted
	if wanted == none {
		if live == nil || live.GetLabels()[ManagedByLabel] != ManagedByValue || !o.ours(live) {
			return nil
		}
		return fmt.Errorf("%s %s still has webhooks that are not wanted any more", o.kindName, o.objectName)
	}
	if live == nil {
		return fmt.Errorf("%s %s does not exist", o.kindName, o.objectName)
	}
	defer o.adopt(wanted, live.(Object))()
	same, err := holds(wanted, live)
	if err == nil && !same {
		err = fmt.Errorf("%s %s is not as it should be; %s changed it last", o.kindName, o.objectName, lastManager(live, o.manager))
	}
	return err
}

// ours tells whether webhooks in the object are ours.
func (o *object[Object, List, Wanted]) ours(live metav1.Object) bool {
	return slices.ContainsFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == o.manager && owns(entry, "f:webhooks")
	})
}

func (o *object[Object, List, Wanted]) adopt(wanted Wanted, live Object) (restore func()) {
	selectors := map[string]*metav1.LabelSelector{}
	for _, w := range o.webhooks(live) {
		for i, field := range selectorFields {
			selectors[selectorField{webhook: w.name, field: field}.key()] = w.selectors[i]
		}
	}
	return adopt(o.manager, o.selectors(wanted), o.before, live, selectors)
}

func (o *object[Object, List, Wanted]) bundles(names map[string]bool, live metav1.Object) [][]byte {
	var out [][]byte
	for _, w := range o.webhooks(live.(Object)) {
		if names[w.name] && len(w.caBundle) > 0 {
			out = append(out, w.caBundle)
		}
	}
	return out
}

func (o *object[Object, List, Wanted]) pass(ctx context.Context, all wanted, live metav1.Object, full, repair bool) (outcome, error) {
	var none Wanted
	wanted := o.wanted(all)
	var data []byte
	before := map[string]*metav1.LabelSelector{}
	if wanted != none {
		var err error
		if data, err = json.Marshal(wanted); err != nil {
			return outcome{}, err
		}
		for _, s := range o.selectors(wanted) {
			before[s.key()] = plain(*s.value)
		}
	}
	liveVersion := ""
	if live != nil {
		liveVersion = live.GetResourceVersion()
	}
	same := o.passed && bytes.Equal(data, o.last)
	if same && !full {
		switch {
		case liveVersion == o.resourceVersion:
			return outcome{}, nil
		case o.observe(all, live) == nil:
			o.resourceVersion = liveVersion
			return outcome{}, nil
		case !repair:
			return outcome{deferred: true}, nil
		}
	}

	if err := o.wait(ctx); err != nil {
		return outcome{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out := outcome{called: true}
	var left string
	var drifted bool
	var err error
	if wanted == none {
		left, out.written, err = o.remove(ctx, nil)
		drifted = out.written
	} else {
		left, drifted, err = o.put(ctx, wanted)
		out.written = left != o.resourceVersion
	}
	if err != nil {
		return outcome{called: true}, fmt.Errorf("%s %s: %w", o.kindName, o.objectName, err)
	}
	out.repaired = drifted && same
	o.passed, o.last, o.before, o.resourceVersion = true, data, before, left
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

// put applies what is wanted. It reads the object first and applies to that
// version of it, so that the selectors of others are kept, and so that it is known
// whether others have changed something of ours, and not only something of their
// own. It returns the resource version that the object has now, and whether it
// was not what is wanted.
func (o *object[Object, List, Wanted]) put(ctx context.Context, wanted Wanted) (left string, drifted bool, err error) {
	var conflict error
	for range maxConflicts {
		live, err := o.client.Get(ctx, o.objectName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			o.at(wanted, "")
			left, err := o.apply(ctx, wanted)
			return left, true, err
		}
		if err != nil {
			return "", false, fmt.Errorf("reading it before writing: %w", err)
		}
		restore := o.adopt(wanted, live)
		same, err := holds(wanted, live)
		if err != nil {
			return "", false, err
		}
		o.at(wanted, live.GetResourceVersion())
		left, err := o.apply(ctx, wanted)
		restore()
		if !apierrors.IsConflict(err) {
			return left, !same, err
		}
		conflict = err
	}
	return "", false, conflict
}

// remove takes the own webhooks out of the object, and then deletes it if it is
// an own one and nothing else is in it. It returns the resource version of what
// is left, if anything, and whether it wrote.
func (o *object[Object, List, Wanted]) remove(ctx context.Context, dryRun []string) (left string, written bool, err error) {
	live, err := o.client.Get(ctx, o.objectName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("reading it before removal: %w", err)
	case live.GetLabels()[ManagedByLabel] != ManagedByValue:
		return live.GetResourceVersion(), false, nil
	}
	rest, err := o.client.Apply(ctx, o.empty(), metav1.ApplyOptions{FieldManager: o.manager, Force: true, DryRun: dryRun})
	if err != nil {
		return "", false, fmt.Errorf("server-side apply without webhooks: %w", err)
	}
	version, uid := rest.GetResourceVersion(), rest.GetUID()
	if len(o.webhooks(rest)) > 0 {
		return version, version != live.GetResourceVersion(), nil
	}
	err = o.client.Delete(ctx, o.objectName, metav1.DeleteOptions{DryRun: dryRun, Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	if err != nil && !apierrors.IsNotFound(err) {
		return "", false, fmt.Errorf("deletion: %w", err)
	}
	return "", true, nil
}
