// SPDX-License-Identifier: Apache-2.0

package backstop

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/internal/store"
	"github.com/sallyport-io/sallyport/internal/store/control"
)

// fieldManager owns the indexes. All installations write the same ones.
const fieldManager = "sallyport-index"

// writeTimeout limits one write.
const writeTimeout = 15 * time.Second

// digest identifies the content of an index.
type digest [sha256.Size]byte

// stored is the observed state of an index.
type stored struct {
	identity store.Identity
	digest   digest
}

// Identity implements [store.Object].
func (s *stored) Identity() store.Identity { return s.identity }

func keep(index *corev1.PodTemplate) *stored {
	digest, _ := digestOf(index)
	return &stored{
		store.Identity{NamespacedName: types.NamespacedName{Namespace: index.Namespace, Name: index.Name}, UID: index.UID, ResourceVersion: index.ResourceVersion},
		digest,
	}
}

// reconciler writes indexes while its replica leads.
type reconciler struct {
	*Controller
	namespaces *control.Controller[string]
	indexes    *store.Store[*stored]
	limiter    *rate.Limiter
	now        func() time.Time

	mu       sync.Mutex
	selector labels.Selector
	next     map[string]time.Time // earliest next write, by namespace
	omitted  map[string][]string  // objects without room, by namespace
	complete bool                 // every selected namespace has its index
}

func newReconciler(c *Controller) *reconciler {
	r := &reconciler{
		Controller: c, now: time.Now,
		limiter: rate.NewLimiter(rate.Limit(c.pace.perSecond), c.pace.perSecond),
		next:    map[string]time.Time{}, omitted: map[string][]string{}, selector: labels.Nothing(),
	}
	r.namespaces = control.NewController(c.pace.retry, c.pace.longest, r.reconcile)
	r.indexes = store.New(store.Kind[*corev1.PodTemplate, *stored]{
		Name: Name + " " + TemplateResource, Example: &corev1.PodTemplate{}, Longest: 10 * time.Second,
		From: cache.NewListWatchFromClient(c.core, TemplateResource, metav1.NamespaceAll, fields.OneTermEqualSelector("metadata.name", TemplateName)),
		Keep: keep,
	}, c.log)
	return r
}

// follow subscribes the reconciler to changes until the returned functions are called.
func (r *reconciler) follow(w *source.Watcher) (removes []func()) {
	objects := store.Handler[*plan.Plan]{Changed: r.objectsChanged}
	return []func(){
		w.Namespaces.Handle(store.Handler[*store.Namespace]{Changed: r.namespacesChanged}),
		w.PodDefaults.Handle(objects), w.ClusterPodDefaults.Handle(objects),
		r.indexes.Handle(store.Handler[*stored]{Changed: r.indexesChanged}),
	}
}

// objectsChanged enqueues the namespaces whose indexes change with these objects.
// Changes that inject more pods wait for others. Changes that inject fewer do not:
// until the index has them, the policy refuses pods that need no injection.
func (r *reconciler) objectsChanged(changes []store.Change[*plan.Plan]) {
	for _, c := range changes {
		before, now := c.Before != nil && c.Before.Injects(), c.Now != nil && c.Now.Injects()
		switch {
		case !before && !now, before && now && c.Before.Version() == c.Now.Version(): // only the status or the injected content changed
		case before:
			r.enqueue(c.Before.Namespace(), 0)
		default:
			r.enqueue(c.Now.Namespace(), r.pace.quiet)
		}
	}
}

func (r *reconciler) namespacesChanged(changes []store.Change[*store.Namespace]) {
	for _, c := range changes {
		switch {
		case c.Now == nil:
			r.mu.Lock()
			delete(r.next, c.Before.Name)
			r.mu.Unlock()
			r.omits(c.Before.Name, Index{})
		case !c.Now.Terminating:
			r.namespaces.Enqueue(c.Now.Name, 0)
		}
	}
}

func (r *reconciler) indexesChanged(changes []store.Change[*stored]) {
	for _, c := range changes {
		if c.Now == nil {
			r.mu.Lock()
			r.complete = false
			r.mu.Unlock()
		}
		r.namespaces.Enqueue(c.Object().identity.Namespace, 0)
	}
	r.metrics.indexes.Set(float64(r.indexes.Len()))
}

// enqueue schedules a check of the index of a namespace, or of all if the name is
// empty.
func (r *reconciler) enqueue(namespace string, after time.Duration) {
	if namespace != "" {
		r.namespaces.Enqueue(namespace, after)
		return
	}
	for _, n := range r.watcher.Namespaces.List() {
		if !n.Terminating {
			r.namespaces.Enqueue(n.Name, after)
		}
	}
}

// ready implements [Controller.Ready].
func (r *reconciler) ready() error {
	if !r.indexes.HasSynced() {
		return fmt.Errorf("%s are not read yet (may this server list them? sallyport manifests --part rbac prints the permissions)", TemplateResource)
	}
	missing := 0
	for _, n := range r.watcher.Namespaces.List() {
		if r.selects(n) && r.observed(n.Name) == nil {
			missing++
		}
	}
	if missing > 0 {
		return fmt.Errorf("%d namespaces have no index of PodDefaults yet", missing)
	}
	return nil
}

// selects reports whether a namespace should have an index.
func (r *reconciler) selects(n *store.Namespace) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return n != nil && !n.Terminating && r.selector.Matches(n.Labels)
}

// observed returns the index of a namespace, or nil.
func (r *reconciler) observed(namespace string) *stored {
	return r.indexes.Get(types.NamespacedName{Namespace: namespace, Name: TemplateName})
}

// desired returns the index that a namespace should have.
func (r *reconciler) desired(n *store.Namespace) Index {
	var entries []*Entry
	for _, of := range []string{"", n.Name} {
		for _, c := range r.watcher.All(of) {
			if entry := NewEntry(c); entry != nil && entry.selects(n.Labels) {
				entries = append(entries, entry)
			}
		}
	}
	return Compile(entries)
}

// reselect checks whether the webhook's namespaces changed, and reports when every one
// has its index.
func (r *reconciler) reselect() {
	selector, err := r.options.Namespaces()
	if err != nil {
		r.log.Error("the namespaces of the webhook are not known", "error", err)
		return
	}
	r.mu.Lock()
	changed := r.selector.String() != selector.String()
	if changed {
		r.selector, r.complete = selector, false
	}
	complete := r.complete
	r.mu.Unlock()
	if changed {
		r.enqueue("", 0)
	}
	if complete || r.ready() != nil {
		return
	}
	r.mu.Lock()
	r.complete = true
	r.mu.Unlock()
	r.options.Changed()
}

// reconcile writes the index of a namespace if it differs from the desired state.
func (r *reconciler) reconcile(ctx context.Context, namespace string) (again time.Duration, err error) {
	n := r.watcher.Namespaces.Get(types.NamespacedName{Name: namespace})
	if !r.selects(n) {
		return 0, nil
	}
	if wait := r.until(namespace); wait > 0 {
		return wait, nil
	}
	desired := r.desired(n)
	r.omits(namespace, desired)
	template := desired.Template(namespace)
	digest, size := digestOf(template)
	if observed := r.observed(namespace); observed != nil && observed.digest == digest {
		return 0, nil
	}
	if r.limiter.Wait(ctx) != nil {
		return 0, nil
	}
	written, err := r.apply(ctx, template, digest)
	if ctx.Err() != nil {
		return 0, nil
	}
	r.metrics.written(err)
	if err != nil {
		r.wait(namespace, r.pace.retry)
		return 0, r.frame.Failed(ctx, err, "index", "namespace", namespace)
	}
	r.indexes.Set(&stored{keep(written).identity, digest})                       // until the watch delivers it
	r.wait(namespace, max(r.pace.again, time.Duration(size)*2*time.Microsecond)) // 0.5 MB per second
	return 0, nil
}

// omits notes which objects have no room in an index.
func (r *reconciler) omits(namespace string, desired Index) {
	r.mu.Lock()
	before := r.omitted[namespace]
	if delete(r.omitted, namespace); len(desired.Omitted) > 0 {
		r.omitted[namespace] = desired.Omitted
	}
	omitted := 0
	for _, of := range r.omitted {
		omitted += len(of)
	}
	r.metrics.omitted.Set(float64(omitted))
	r.mu.Unlock()
	if len(desired.Omitted) > 0 && len(before) != len(desired.Omitted) {
		r.log.Error("there is no room in the index for all objects: pods that have a label of one without room are rejected unless a server has decided on them",
			"namespace", namespace, "objects", desired.Objects, "omitted", len(desired.Omitted))
	}
	r.tellOmitted(namespace, difference(before, desired.Omitted))
}

// until returns how long an index must wait for its next write.
func (r *reconciler) until(namespace string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next[namespace].Sub(r.now())
}

// wait puts off the next write of an index.
func (r *reconciler) wait(namespace string, so time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next[namespace] = r.now().Add(so)
}

// apply writes a whole index with the given digest and returns what is stored.
func (r *reconciler) apply(ctx context.Context, template *corev1.PodTemplate, desired digest) (*corev1.PodTemplate, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	body, err := json.Marshal(template)
	if err != nil {
		return nil, err
	}
	patch := func(kind types.PatchType, body []byte) *rest.Request {
		return r.core.Patch(kind).Namespace(template.Namespace).Resource(TemplateResource).Name(template.Name).
			Param("fieldManager", fieldManager).Body(body)
	}
	stored := &corev1.PodTemplate{}
	if err := patch(types.ApplyYAMLPatchType, body).Param("force", "true").Do(ctx).Into(stored); err != nil {
		return nil, err
	}
	if got, _ := digestOf(stored); got == desired {
		return stored, nil
	}
	// Server-side apply leaves fields of other managers where nothing is desired.
	body, err = json.Marshal(map[string]any{"template": map[string]any{"spec": map[string]any{"containers": template.Template.Spec.Containers}}})
	if err != nil {
		return nil, err
	}
	err = patch(types.MergePatchType, body).Do(ctx).Into(stored)
	return stored, err
}
