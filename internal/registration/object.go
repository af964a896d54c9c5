// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	apiextensionsac "k8s.io/apiextensions-apiserver/pkg/client/applyconfiguration/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/sallyport-io/sallyport/internal/registration/pace"
)

const (
	mutatingKind   = "MutatingWebhookConfiguration"
	validatingKind = "ValidatingWebhookConfiguration"
	definitionKind = "CustomResourceDefinition"
	policyKind     = "ValidatingAdmissionPolicy"
	bindingKind    = "ValidatingAdmissionPolicyBinding"
)

// callTimeout is for one call of the API server.
const callTimeout = 30 * time.Second

// desired is the desired state of the objects of a reconciler.
type desired struct {
	Configurations
	policies    policies
	conversions map[string]*apiextensionsac.CustomResourceDefinitionApplyConfiguration
}

// managed is an object that a [Controller] writes. It belongs to one goroutine, except for
// bundles.
type managed interface {
	kind() string
	name() string
	// listerWatcher lists and watches the one object, and prototype is its type.
	listerWatcher() cache.ListerWatcher
	prototype() runtime.Object
	// drift returns an error if the observed object, which may be nil, is not as desired.
	drift(desired desired, observed metav1.Object) error
	// reconcile writes the desired object. Without full, it does nothing if the desired
	// state is unchanged and still holds; without repair, it does nothing if only other
	// clients changed the object.
	reconcile(ctx context.Context, desired desired, observed metav1.Object, full, repair bool) (outcome, error)
	// forget signals that another Controller may have written the object since it was reconciled.
	forget()
	// bundles are the CA bundles in our part of the observed object.
	bundles(names map[string]bool, observed metav1.Object) [][]byte
}

// outcome is the result of reconciling an object.
type outcome struct {
	called    bool   // the API server was called
	written   bool   // the object changed; may also be set if it was right the first time
	changedBy string // who had changed it, if that is why it was written
	deferred  bool   // other clients changed it, and the repair was deferred
	waiting   error  // what has to change before it can be as desired
}

// object is a managed object with its watch.
type object struct {
	managed
	reconciler *reconciler
	informer   cache.SharedIndexInformer
	stop       func()
	repair     pace.Repairs
	conflict   conflict
	forbidden  conflict              // reports about missing rights
	denied     atomic.Pointer[error] // why it could not be read the last time; nil if never
}

// observed is nil if there is no object. Before synced it is not known.
func (o *object) observed() (observed metav1.Object, synced bool) {
	synced = o.informer.HasSynced()
	if item, ok, err := o.informer.GetStore().GetByKey(o.name()); err == nil && ok {
		observed = item.(metav1.Object)
	}
	return observed, synced
}

func (o *object) unseen() error { return fmt.Errorf("%s %s is not observed yet", o.kind(), o.name()) }

// all are the objects that are watched.
func (k *Controller) all() []*object {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.objects)
}

// find returns the object of a kind; nil if it is not watched.
func (k *Controller) find(kind string) *object {
	for _, o := range k.all() {
		if o.kind() == kind {
			return o
		}
	}
	return nil
}

// watch begins to manage an object.
func (k *Controller) watch(ctx context.Context, m managed, r *reconciler) error {
	wakes := r
	if r == k.policies { // how the webhook is registered depends on these objects
		wakes = k.configurations
	}
	wake := func() { k.queue.Add(wakes) }
	o := &object{managed: m, reconciler: r}
	informer := cache.NewSharedIndexInformerWithOptions(m.listerWatcher(), m.prototype(), cache.SharedIndexInformerOptions{})
	err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
		if apierrors.IsNotFound(err) && r == k.policies {
			return // before Kubernetes 1.30; what waits for it logs that once
		}
		if apierrors.IsForbidden(err) {
			o.denied.Store(&err)
		}
		if ctx.Err() == nil { // the reflector retries with a back-off
			k.options.Logger.Warn("object cannot be watched", "kind", m.kind(), "error", err)
		}
	})
	if err != nil {
		return err
	}
	if m.kind() == definitionKind {
		if err := informer.SetTransform(withoutSchemas); err != nil {
			return err
		}
	}
	if _, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { wake() },
		UpdateFunc: func(any, any) { wake() },
		DeleteFunc: func(any) { wake() },
	}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	k.watches.Go(func() { informer.RunWithContext(ctx) })
	k.watches.Go(func() { // a missing object causes no event
		if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			wake()
		}
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	o.informer, o.stop = informer, cancel
	k.objects = append(k.objects, o)
	return nil
}

// lastManager names who changed the object last, apart from us.
func lastManager(observed metav1.Object, us string) string {
	if observed == nil {
		return "unknown, it was deleted"
	}
	name, last := "unknown", time.Time{}
	for _, entry := range observed.GetManagedFields() {
		if entry.Manager != us && entry.Subresource == "" && entry.Time != nil && !entry.Time.Time.Before(last) {
			name, last = cmp.Or(entry.Manager, "unknown"), entry.Time.Time
		}
	}
	return name
}
