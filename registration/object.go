// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsac "k8s.io/apiextensions-apiserver/pkg/client/applyconfiguration/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	admissionregistrationac "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	"k8s.io/client-go/tools/cache"
)

const (
	mutatingKind   = "MutatingWebhookConfiguration"
	validatingKind = "ValidatingWebhookConfiguration"
)

// callTimeout is for one call of the API server.
const callTimeout = 30 * time.Second

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

// object is a kept configuration of webhooks, which others may have webhooks in too.
type object[Object metav1.Object, List runtime.Object, Wanted comparable] struct {
	applied[Object, List, Wanted]
	empty     func() Wanted // without webhooks
	webhooks  func(Object) []liveWebhook
	selectors func(Wanted) []selectorField

	before map[string]*metav1.LabelSelector // what the last successful pass wanted
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
		applied: newApplied(o, wait, mutatingKind, &admissionregistrationv1.MutatingWebhookConfiguration{}, o.Client.MutatingWebhookConfigurations(),
			func(w wanted) *admissionregistrationac.MutatingWebhookConfigurationApplyConfiguration {
				return w.Mutating
			},
			(*admissionregistrationac.MutatingWebhookConfigurationApplyConfiguration).WithResourceVersion),
		empty: o.Config.mutating,
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
		applied: newApplied(o, wait, validatingKind, &admissionregistrationv1.ValidatingWebhookConfiguration{}, o.Client.ValidatingWebhookConfigurations(),
			func(w wanted) *admissionregistrationac.ValidatingWebhookConfigurationApplyConfiguration {
				return w.Validating
			},
			(*admissionregistrationac.ValidatingWebhookConfigurationApplyConfiguration).WithResourceVersion),
		empty: o.Config.validating,
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

func (o *object[Object, List, Wanted]) forget() { o.passed, o.before = false, nil }

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
	return asWanted(o.kindName+" "+o.objectName, wanted, live, o.manager)
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
	before := map[string]*metav1.LabelSelector{}
	if wanted := o.wanted(all); wanted != none {
		for _, s := range o.selectors(wanted) {
			before[s.key()] = plain(*s.value)
		}
	}
	out, err := o.reconcile(ctx, o, all, live, full, repair)
	if err == nil {
		o.before = before
	}
	return out, err
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
