// SPDX-License-Identifier: Apache-2.0

package backstop

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
)

// fieldManager owns the indexes. All installations write the same.
const fieldManager = "sallyport-index"

// writeTimeout is for one write.
const writeTimeout = 15 * time.Second

// digest tells indexes apart.
type digest [sha256.Size]byte

func sum(texts iter.Seq[string]) (out digest) {
	h := sha256.New()
	for text := range texts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(text), text)
	}
	h.Sum(out[:0])
	return out
}

// epoch is what a replica knows from when it begins to lead until it ends.
type epoch struct {
	*Controller
	queue   workqueue.TypedDelayingInterface[string] // of namespaces
	limiter *rate.Limiter
	now     func() time.Time

	mu         sync.Mutex
	loading    map[string]bool              // kinds that were not read yet
	objects    map[string]map[string]*Entry // by namespace and name; of the cluster in the one without a name
	namespaces map[string]labels.Set
	selector   labels.Selector
	live       map[string]digest // by namespace
	plans      map[string]*plan
	complete   bool // every namespace has its index
}

// A plan is when an index was written, and how that went.
type plan struct {
	next     time.Time // when it may be written again
	failures int
	omitted  int
}

func newEpoch(c *Controller) *epoch {
	e := &epoch{
		Controller: c, now: time.Now,
		queue:   workqueue.NewTypedDelayingQueue[string](),
		limiter: rate.NewLimiter(rate.Limit(c.pace.perSecond), c.pace.perSecond),
		loading: map[string]bool{}, objects: map[string]map[string]*Entry{}, namespaces: map[string]labels.Set{},
		live: map[string]digest{}, plans: map[string]*plan{}, selector: labels.Nothing(),
	}
	for _, kind := range e.kinds() {
		e.loading[kind.name] = true
	}
	e.reselect()
	return e
}

// ready is [Controller.Ready].
func (e *epoch) ready() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.loading) > 0 {
		return fmt.Errorf("%s are not read yet (are their CRDs installed, and may this server list them? sallyport manifests --part crd,rbac prints both)",
			strings.Join(slices.Sorted(maps.Keys(e.loading)), ", "))
	}
	missing := 0
	for name, set := range e.namespaces {
		if _, ok := e.live[name]; !ok && e.selector.Matches(set) {
			missing++
		}
	}
	if missing > 0 {
		return fmt.Errorf("%d namespaces have no index of PodDefaults yet", missing)
	}
	return nil
}

// checkComplete tells when every namespace has its index.
func (e *epoch) checkComplete() {
	e.mu.Lock()
	was := e.complete
	e.mu.Unlock()
	if was || e.ready() != nil {
		return
	}
	e.mu.Lock()
	e.complete = true
	e.mu.Unlock()
	e.options.Changed()
}

// loaded notes that a kind was read. Before all were, nothing is written.
func (e *epoch) loaded(kind string) {
	e.mu.Lock()
	was := len(e.loading)
	delete(e.loading, kind)
	if was > 0 && len(e.loading) == 0 {
		e.later("", 0)
	}
	e.mu.Unlock()
}

// set adds an object or replaces the one of the same name; a nil entry says that it
// changes no pod, or is gone.
func (e *epoch) set(namespace, name string, entry *Entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.put(namespace, name, entry)
}

func (e *epoch) put(namespace, name string, entry *Entry) {
	of := e.objects[namespace]
	old := of[name]
	switch {
	case entry == nil && old == nil:
		return
	case entry == nil:
		delete(of, name)
		if len(of) == 0 {
			delete(e.objects, namespace)
		}
	case old != nil && reflect.DeepEqual(old.identity(), entry.identity()): // a status was written, or what is injected changed
		return
	default:
		if of == nil {
			of = map[string]*Entry{}
			e.objects[namespace] = of
		}
		of[name] = entry
	}
	if old == nil {
		e.later(namespace, e.pace.quiet)
	} else {
		e.later(namespace, 0)
	}
}

// identity is all that shows in an index, in comparable form.
func (e *Entry) identity() any {
	namespaces := ""
	if e.namespaces != nil {
		namespaces = e.namespaces.String()
	}
	return []any{e.decision, e.version, e.requirements, namespaces}
}

// replace makes the objects of a kind these and no others.
func (e *epoch) replace(all map[types.NamespacedName]*Entry, cluster bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for namespace, of := range e.objects {
		if (namespace == "") != cluster {
			continue
		}
		for _, name := range slices.Collect(maps.Keys(of)) {
			if _, stays := all[types.NamespacedName{Namespace: namespace, Name: name}]; !stays {
				e.put(namespace, name, nil)
			}
		}
	}
	for key, entry := range all {
		e.put(key.Namespace, key.Name, entry)
	}
}

// setNamespace tells of the labels of a namespace; nil if it is gone, or going.
func (e *epoch) setNamespace(name string, set labels.Set) {
	e.mu.Lock()
	defer e.mu.Unlock()
	old, known := e.namespaces[name]
	switch {
	case set == nil:
		delete(e.namespaces, name)
		delete(e.plans, name)
	case !known || !maps.Equal(old, set):
		e.namespaces[name] = set
		e.later(name, 0)
	}
}

func (e *epoch) namespaceNames() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Keys(e.namespaces))
}

// setLive tells of an index as it is in the cluster; nil if there is none.
func (e *epoch) setLive(namespace string, template *corev1.PodTemplate) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if template == nil {
		delete(e.live, namespace)
		e.complete = false
		e.later(namespace, 0)
	} else {
		live, _ := digestOf(template)
		if e.live[namespace] != live {
			e.live[namespace] = live
			e.later(namespace, 0)
		}
	}
	e.metrics.indexes.Set(float64(len(e.live)))
}

func (e *epoch) liveNames() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Keys(e.live))
}

// reselect looks whether the webhook is for other namespaces than before.
func (e *epoch) reselect() {
	selector, err := e.options.Namespaces()
	if err != nil {
		e.log.Error("the namespaces of the webhook are not known", "error", err)
		return
	}
	e.mu.Lock()
	changed := e.selector.String() != selector.String()
	if changed {
		e.selector, e.complete = selector, false
		e.later("", 0)
	}
	e.mu.Unlock()
	e.checkComplete()
}

// later has the index of a namespace looked at, or of all of them if the name is empty.
func (e *epoch) later(namespace string, delay time.Duration) {
	if len(e.loading) > 0 {
		return // all of them are, once everything was read
	}
	if namespace != "" {
		e.queue.AddAfter(namespace, delay)
		return
	}
	for name := range e.namespaces {
		e.queue.AddAfter(name, delay)
	}
}

// write writes indexes until the context ends.
func (e *epoch) write(ctx context.Context) {
	for {
		namespace, down := e.queue.Get()
		if down {
			return
		}
		if ctx.Err() == nil {
			e.writeOne(ctx, namespace)
		}
		e.queue.Done(namespace)
	}
}

func (e *epoch) writeOne(ctx context.Context, namespace string) {
	index, wanted, ok := e.wanted(namespace)
	if !ok {
		return
	}
	template := index.Template(namespace)
	digest, size := digestOf(template)
	e.mu.Lock()
	live, there := e.live[namespace]
	right := there && live == digest
	wait := wanted.next.Sub(e.now())
	e.mu.Unlock()
	if right {
		return
	}
	if wait > 0 {
		e.queue.AddAfter(namespace, wait)
		return
	}
	if e.limiter.Wait(ctx) != nil {
		return
	}
	err := e.apply(ctx, template, digest)
	if ctx.Err() != nil {
		return
	}
	e.metrics.written(err)
	e.mu.Lock()
	if err != nil {
		delay := min(e.pace.retry<<min(wanted.failures, 10), e.pace.longest)
		wanted.failures++
		wanted.next = e.now().Add(delay)
		e.queue.AddAfter(namespace, delay)
		e.mu.Unlock()
		e.log.Warn("an index cannot be written, will try again", "namespace", namespace, "error", err, "in", delay)
		return
	}
	wanted.failures = 0
	wanted.next = e.now().Add(max(e.pace.again, time.Duration(size)*2*time.Microsecond)) // half a megabyte a second
	e.live[namespace] = digest
	if index.Omitted != wanted.omitted {
		wanted.omitted = index.Omitted
		if index.Omitted > 0 {
			e.log.Error("there is no room in the index for all objects: pods pass without them while no server answers",
				"namespace", namespace, "objects", index.Objects, "omitted", index.Omitted)
		}
	}
	omitted := 0
	for _, p := range e.plans {
		omitted += p.omitted
	}
	e.metrics.omitted.Set(float64(omitted))
	e.mu.Unlock()
}

// wanted is the index that a namespace is to have; false if it needs none.
func (e *epoch) wanted(namespace string) (Index, *plan, bool) {
	e.mu.Lock()
	set, known := e.namespaces[namespace]
	if !known || !e.selector.Matches(set) || len(e.loading) > 0 {
		e.mu.Unlock()
		return Index{}, nil, false
	}
	wanted := e.plans[namespace]
	if wanted == nil {
		wanted = &plan{}
		e.plans[namespace] = wanted
	}
	var entries []*Entry
	for _, from := range []map[string]*Entry{e.objects[""], e.objects[namespace]} {
		for _, entry := range from {
			if entry.selects(set) {
				entries = append(entries, entry)
			}
		}
	}
	e.mu.Unlock()
	return Compile(entries), wanted, true
}

// apply writes an index, and all of it, whose digest is wanted.
func (e *epoch) apply(ctx context.Context, template *corev1.PodTemplate, wanted digest) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	body, err := json.Marshal(template)
	if err != nil {
		return err
	}
	patch := func(kind types.PatchType, body []byte) *rest.Request {
		return e.core.Patch(kind).Namespace(template.Namespace).Resource(TemplateResource).Name(template.Name).
			Param("fieldManager", fieldManager).Body(body)
	}
	stored := &corev1.PodTemplate{}
	if err := patch(types.ApplyYAMLPatchType, body).Param("force", "true").Do(ctx).Into(stored); err != nil {
		return err
	}
	if got, _ := digestOf(stored); got == wanted {
		return nil
	}
	// What somebody has put where nothing is to be, server-side apply leaves to them.
	body, err = json.Marshal(map[string]any{"template": map[string]any{"spec": map[string]any{"containers": template.Template.Spec.Containers}}})
	if err != nil {
		return err
	}
	return patch(types.MergePatchType, body).Do(ctx).Error()
}
