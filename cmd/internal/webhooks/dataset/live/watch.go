// SPDX-License-Identifier: Apache-2.0

// Package live reads Datasets and runtimes in a cluster, and follows them: it is a source of the dataset webhook.
package live

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/kinds"
	"github.com/sallyport-io/sallyport/internal/store"
)

// absentInterval is how often to check whether a missing CRD has been installed.
const absentInterval = 5 * time.Second

// Watcher is a [Source] that watches claims, Datasets and runtimes of a cluster and
// keeps only what is needed of each. A kind is watched as soon as its
// CustomResourceDefinition is installed. Fresh reads, DaemonSets and PersistentVolumes
// go to the API server. See [Watch].
type Watcher struct {
	reader   *Reader
	index    *dataset.Index
	follows  map[kinds.Kind]*follow
	logger   *slog.Logger
	changed  chan struct{} // Datasets or settings have changed
	sidecars atomic.Bool   // wanted by a profile of the settings
	loaded   func()

	core     *rest.RESTClient // for typed objects
	mu       sync.Mutex
	profiles map[dataset.Ref]*profileStore
	wanted   chan struct{} // another profile is wanted
}

// follow watches one kind.
type follow struct {
	kind      kinds.Kind
	index     *dataset.Index
	reflector *cache.Reflector
	changed   func()
	loaded    func()
	logger    *slog.Logger
	interval  time.Duration
	absent    atomic.Bool
	// ready is set once existing objects have been read, or the kind has no definition.
	// It stays set: fresh reads cover a stale watch.
	ready atomic.Bool
}

// Watch prepares a watcher of all namespaces. [Watcher.Run] starts it. The credentials
// in config must be allowed to get, list and watch claims, Datasets and runtimes, and
// need the rights of [Settings.PolicyRules].
func Watch(config *rest.Config, logger *slog.Logger) (*Watcher, error) {
	config = rest.CopyConfig(config)
	config.RateLimiter, config.QPS, config.Burst = nil, 100, 200
	reader, err := NewReader(config)
	if err != nil {
		return nil, err
	}
	w := &Watcher{
		reader: reader, index: dataset.NewIndex(), follows: map[kinds.Kind]*follow{}, logger: logger,
		loaded: func() {}, changed: make(chan struct{}, 1), profiles: map[dataset.Ref]*profileStore{}, wanted: make(chan struct{}, 1),
	}
	if w.core, err = store.Client(config, corev1.SchemeGroupVersion, corev1.AddToScheme); err != nil {
		return nil, fmt.Errorf("client for ConfigMaps: %w", err)
	}
	claims, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for claims: %w", err)
	}
	resource := claims.Resource(schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"})
	w.follow(kinds.Claim, &metav1.PartialObjectMetadata{}, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return resource.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return resource.Watch(ctx, options)
		},
	})
	for _, kind := range kinds.OfFluid() {
		w.follow(kind, &lean{}, w.lister(kinds.ResourceOf(kind)))
	}
	return w, nil
}

// lister lists and watches a resource of Fluid's API.
func (w *Watcher) lister(resource string) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			out := &leanList{}
			return out, w.reader.fluid.Get().Resource(resource).VersionedParams(&options, metav1.ParameterCodec).Do(ctx).Into(out)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch = true
			return w.reader.fluid.Get().Resource(resource).VersionedParams(&options, metav1.ParameterCodec).Watch(ctx)
		},
	}
}

func (w *Watcher) follow(kind kinds.Kind, expected runtime.Object, source *cache.ListWatch) {
	f := &follow{kind: kind, index: w.index, logger: w.logger, interval: absentInterval, changed: func() {}, loaded: func() { w.loaded() }}
	if kind == kinds.Dataset {
		f.changed = func() { tell(w.changed) }
	}
	f.reflector = store.Reflector("datasets: "+string(kind), store.Soon, f.patient(source), expected, f)
	w.follows[kind] = f
}

// patient waits until the kind has a definition.
func (f *follow) patient(source *cache.ListWatch) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return patiently(ctx, f, runtime.Object(&leanList{}), func() (runtime.Object, error) { return source.ListWithContextFunc(ctx, options) })
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return patiently(ctx, f, watch.NewEmptyWatch(), func() (watch.Interface, error) { return source.WatchFuncWithContext(ctx, options) })
		},
	}
}

// patiently returns nothing, without an error to log, if the context ends before there
// is a definition.
func patiently[T any](ctx context.Context, f *follow, nothing T, try func() (T, error)) (T, error) {
	for {
		out, err := try()
		if err == nil || !apierrors.IsNotFound(err) {
			if err == nil && f.absent.Swap(false) {
				f.logger.Info("the CustomResourceDefinition of a kind is there now", "kind", f.kind)
			}
			return out, err
		}
		if !f.absent.Swap(true) {
			f.index.Replace(f.kind, nil)
			f.ready.Store(true)
			f.loaded()
			f.logger.Info("the CustomResourceDefinition of a kind is not installed: it is looked for again and again", "kind", f.kind, "every", f.interval)
		}
		timer := time.NewTimer(wait.Jitter(f.interval, 0.2))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nothing, nil
		case <-timer.C:
		}
	}
}

// Run watches all kinds until the context ends.
func (w *Watcher) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, f := range w.follows {
		wg.Go(func() { f.reflector.RunWithContext(ctx) })
	}
	wg.Go(func() { w.prepare(ctx) })
	wg.Go(func() { w.followProfiles(ctx) })
	wg.Wait()
	return nil
}

// WhenLoaded sets loaded to be called whenever Ready or ReadyFor may have become nil.
// Call it before Run.
func (w *Watcher) WhenLoaded(loaded func()) { w.loaded = loaded }

// Ready returns nil once everything has been read.
func (w *Watcher) Ready() error {
	for _, f := range w.follows {
		if !f.ready.Load() {
			return w.notReady()
		}
	}
	return nil
}

func (w *Watcher) notReady() error {
	var missing []string
	for _, kind := range append([]kinds.Kind{kinds.Claim}, kinds.OfFluid()...) {
		if !w.follows[kind].ready.Load() {
			missing = append(missing, string(kind))
		}
	}
	return fmt.Errorf("not all of %s are read yet (may this server list them?)", strings.Join(missing, ", "))
}

// Len returns the number of known Datasets.
func (w *Watcher) Len() int { return w.index.Count(kinds.Dataset) }

// Find implements [Source].
func (w *Watcher) Find(ctx context.Context, ref dataset.Ref, fresh bool) (*dataset.Object, error) {
	if ref.Kind == kinds.Profile {
		return w.profile(ref)
	}
	if err := w.Ready(); err != nil {
		return nil, admission.Unavailable(err, time.Second)
	}
	f := w.follows[ref.Kind]
	switch {
	case fresh || f == nil:
		return w.reader.Find(ctx, ref, true)
	case f.absent.Load():
		return nil, dataset.ErrNotInstalled
	}
	return w.index.Find(ctx, ref, false)
}

// objectOf returns the cached part of a listed or watched object.
func objectOf(obj any) (dataset.Ref, *dataset.Object, error) {
	switch o := obj.(type) {
	case *metav1.PartialObjectMetadata:
		return dataset.Ref{Kind: kinds.Claim, Namespace: o.Namespace, Name: o.Name}, &dataset.Object{Claim: dataset.ParseClaim(o.Name, o.Labels)}, nil
	case *lean:
		if o.object == nil {
			return o.ref, nil, fmt.Errorf("%s: %w", o.Kind, errNoName)
		}
		return o.ref, o.object, nil
	}
	return dataset.Ref{}, nil, fmt.Errorf("%T is not read by this webhook", obj)
}

// Add implements [cache.ReflectorStore].
func (f *follow) Add(obj any) error {
	ref, object, err := objectOf(obj)
	if err != nil {
		return err
	}
	f.index.Set(ref, object)
	f.changed()
	return nil
}

// Update implements [cache.ReflectorStore].
func (f *follow) Update(obj any) error { return f.Add(obj) }

// Delete implements [cache.ReflectorStore].
func (f *follow) Delete(obj any) error {
	ref, _, err := objectOf(obj)
	if err != nil {
		return err
	}
	f.index.Delete(ref)
	f.changed()
	return nil
}

// Replace implements [cache.ReflectorStore].
func (f *follow) Replace(objects []any, _ string) error {
	all := make(map[dataset.Ref]*dataset.Object, len(objects))
	for _, obj := range objects {
		ref, object, err := objectOf(obj)
		if err != nil {
			return err
		}
		all[ref] = object
	}
	f.index.Replace(f.kind, all)
	f.ready.Store(true)
	f.loaded()
	f.changed()
	return nil
}

// Resync implements [cache.ReflectorStore].
func (f *follow) Resync() error { return nil }

// Transformer implements [cache.TransformingStore]: it drops everything from a claim's
// metadata except the relevant labels, as soon as it is read.
func (f *follow) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if o, ok := obj.(*metav1.PartialObjectMetadata); ok {
			o.ObjectMeta = metav1.ObjectMeta{
				Name: o.Name, Namespace: o.Namespace, UID: o.UID, ResourceVersion: o.ResourceVersion, Labels: dataset.ClaimLabels(o.Labels), Annotations: initialEvents(o.Annotations),
			}
		}
		return obj, nil
	}
}

// initialEvents keeps the annotation that ends the initial events of a watch.
func initialEvents(annotations map[string]string) map[string]string {
	if value, ok := annotations[metav1.InitialEventsAnnotationKey]; ok {
		return map[string]string{metav1.InitialEventsAnnotationKey: value}
	}
	return nil
}

var _ cache.TransformingStore = (*follow)(nil)
