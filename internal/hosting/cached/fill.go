// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/sallyport-io/sallyport/internal/hosting"
)

// Filling fills the cache of a manager with the kinds that are declared. It is a runnable of that
// manager, on all replicas. Make one with [NewFilling].
type Filling struct {
	logger  *slog.Logger
	scheme  *runtime.Scheme
	changed func()
	from    cache.Cache
	kinds   []*filled
}

// filled is a kind, and how far it is.
type filled struct {
	Kind
	gvk      schema.GroupVersionKind
	informer cache.Informer // nil until the kind is served

	mu     sync.Mutex
	found  map[string]client.IndexerFunc // the indexes that controllers have added
	synced bool
	reason error // why it is not synced yet; nil for the first list
}

// NewFilling returns one for kinds that were validated. Changed is called when one is filled.
func NewFilling(scheme *runtime.Scheme, kinds []Kind, logger *slog.Logger, changed func()) (*Filling, error) {
	f := &Filling{logger: logger, scheme: scheme, changed: changed}
	for _, kind := range kinds {
		gvk, err := apiutil.GVKForObject(kind.Object, scheme)
		if err != nil {
			return nil, err
		}
		f.kinds = append(f.kinds, &filled{Kind: kind, gvk: gvk})
	}
	return f, nil
}

// Options are those of the manager's cache.
func (f *Filling) Options() cache.Options {
	options := cache.Options{}
	_ = f.Complete(&options) // two of a kind need options that have one
	return options
}

// Complete adds what is declared to options that the application may have replaced. What they
// say of a declared kind holds, if its declaration says nothing.
func (f *Filling) Complete(options *cache.Options) error {
	if options.NewInformer == nil {
		options.NewInformer = f.newInformer
	}
	all := maps.Clone(options.ByObject)
	if all == nil {
		all = map[client.Object]cache.ByObject{}
	}
	var errs []error
	for _, kind := range f.kinds {
		declared := !reflect.ValueOf(kind.ByObject).IsZero()
		if _, ok := all[kind.Object]; !ok {
			all[kind.Object] = kind.ByObject
		}
		for object, kept := range options.ByObject {
			switch {
			case object == kind.Object || f.kindOf(object) != kind:
			case declared:
				errs = append(errs, fmt.Errorf("WithManagerOptions: Cache.ByObject and WithCache both say what is kept of %s: say it once", describe(kind.gvk)))
			default:
				delete(all, kind.Object)
				kind.ByObject = kept
			}
		}
	}
	options.ByObject = all
	return errors.Join(errs...)
}

// NewCache is [cache.New] for kinds that the API server need not serve yet.
func (f *Filling) NewCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	lenient := &lenientMapper{RESTMapper: options.Mapper, in: map[schema.GroupKind]bool{}}
	for _, kind := range f.kinds {
		lenient.in[kind.gvk.GroupKind()] = len(kind.Namespaces)+len(options.DefaultNamespaces) > 0
	}
	options.Mapper = lenient
	made, err := cache.New(config, options)
	lenient.made.Store(true)
	return made, err
}

// lenientMapper maps kinds that are not served too, as long as a cache is made: only their scope
// is asked for then, and only to see whether their namespaces may be restricted.
type lenientMapper struct {
	meta.RESTMapper
	in   map[schema.GroupKind]bool // whether they are in namespaces
	made atomic.Bool
}

// RESTMapping implements [meta.RESTMapper].
func (m *lenientMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	if namespaced, declared := m.in[kind]; err != nil && declared && !m.made.Load() {
		mapping = &meta.RESTMapping{Scope: meta.RESTScopeRoot}
		if namespaced {
			mapping.Scope = meta.RESTScopeNamespace
		}
		return mapping, nil
	}
	return mapping, err
}

// Fill says which cache is filled. Kinds that are served already have their informers and indexes
// from now on, so that controllers begin with them.
func (f *Filling) Fill(ctx context.Context, from cache.Cache) {
	f.from = from
	for _, kind := range f.kinds {
		if err := f.inform(ctx, kind); err != nil {
			kind.is(false, err) // Start tries again, and logs
		}
	}
}

// Reader reads what is declared, also by the indexes that controllers have added until now.
func (f *Filling) Reader() (client.Reader, error) {
	var kinds []Kind
	for _, kind := range f.kinds {
		kinds = append(kinds, kind.withFound())
	}
	return NewReader(f.scheme, kinds, f.from)
}

func (k *filled) withFound() Kind {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := maps.Clone(k.found)
	if all == nil {
		return k.Kind
	}
	maps.Copy(all, k.Indexes)
	kind := k.Kind
	kind.Indexes = all
	return kind
}

// Indexer returns the manager's indexer, which notes the indexes that controllers add.
func (f *Filling) Indexer(indexer client.FieldIndexer) client.FieldIndexer { return noting{indexer, f} }

type noting struct {
	client.FieldIndexer
	filling *Filling
}

// IndexField implements [client.FieldIndexer].
func (n noting) IndexField(ctx context.Context, object client.Object, name string, values client.IndexerFunc) error {
	if err := n.FieldIndexer.IndexField(ctx, object, name, values); err != nil {
		return err
	}
	if kind := n.filling.kindOf(object); kind != nil {
		kind.mu.Lock()
		defer kind.mu.Unlock()
		if kind.found == nil {
			kind.found = map[string]client.IndexerFunc{}
		}
		kind.found[name] = values
	}
	return nil
}

// kindOf returns what is declared of an object's kind and form, or nil.
func (f *Filling) kindOf(object runtime.Object) *filled {
	gvk, err := apiutil.GVKForObject(object, f.scheme)
	i := slices.IndexFunc(f.kinds, func(k *filled) bool { return k.gvk == gvk && form(k.Object) == form(object) })
	if err != nil || i < 0 {
		return nil
	}
	return f.kinds[i]
}

// newInformer is the one that controller-runtime's caches make, which tells why it cannot list.
func (f *Filling) newInformer(source toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	informer := toolscache.NewSharedIndexInformer(source, object, resync, indexers)
	kind := f.kindOf(object)
	if kind == nil {
		return informer
	}
	handler := func(ctx context.Context, r *toolscache.Reflector, err error) { f.failed(ctx, kind, r, err) }
	if err := informer.SetWatchErrorHandlerWithContext(handler); err != nil { // only one that runs refuses it
		f.logger.Error("the cache cannot tell why it is not filled", "kind", describe(kind.gvk), "error", err)
	}
	return informer
}

// failed notes why a kind cannot be listed or watched.
func (f *Filling) failed(ctx context.Context, kind *filled, r *toolscache.Reflector, err error) {
	if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
		toolscache.DefaultWatchErrorHandler(ctx, r, err)
		if !apierrors.IsNotFound(err) {
			return
		}
	}
	reason := fmt.Errorf("the API server does not let this server list and watch them: apply the rights that the command manifests prints (%w)", err)
	if apierrors.IsNotFound(err) {
		reason = fmt.Errorf("the API server serves them no more: install their CustomResourceDefinition (%w)", err)
	}
	if kind.is(false, reason) {
		f.logger.Warn("the cache is not filled", "kind", describe(kind.gvk), "error", reason)
	}
}

// is notes how far a kind is, and tells whether that is new.
func (k *filled) is(synced bool, reason error) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	different := k.reason == nil || reason == nil || k.reason.Error() != reason.Error()
	k.synced, k.reason = k.synced || synced, reason
	return different
}

// NeedLeaderElection is false: every replica answers reviews.
func (f *Filling) NeedLeaderElection() bool { return false }

// Start fills the cache, and returns when it is filled, when ctx ends, or with the error of an
// index that a controller has added too.
func (f *Filling) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, kind := range f.kinds {
		group.Go(func() error { return f.fill(ctx, kind) })
	}
	return group.Wait()
}

// errIndex reports an index that a controller has added too.
var errIndex = errors.New("a controller must not add an index that WithCache declares")

// inform makes the informer of a kind, with its indexes, once.
func (f *Filling) inform(ctx context.Context, kind *filled) error {
	if kind.informer != nil {
		return nil
	}
	informer, err := f.from.GetInformer(ctx, kind.Object, cache.BlockUntilSynced(false))
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("the API server serves no such kind: install its CustomResourceDefinition (%w)", err)
	}
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(kind.Indexes)) {
		if err := f.from.IndexField(ctx, kind.Object, name, kind.Indexes[name]); err != nil {
			return fmt.Errorf("index %q of %s: %w (%w)", name, describe(kind.gvk), errIndex, err)
		}
	}
	kind.informer = informer
	kind.is(false, nil)
	return nil
}

// fill waits for the kind to be served, and for the first list.
func (f *Filling) fill(ctx context.Context, kind *filled) error {
	again := func(err error) bool { return !errors.Is(err, errIndex) }
	err := hosting.WaitFor(ctx, f.logger, "the cache of "+describe(kind.gvk), again, func(ctx context.Context) error {
		err := f.inform(ctx, kind)
		if err != nil {
			kind.is(false, err)
		}
		return err
	})
	switch {
	case errors.Is(err, errIndex):
		return err
	case err != nil, !toolscache.WaitForCacheSync(ctx.Done(), kind.informer.HasSynced):
		return nil //nolint:nilerr // ctx has ended
	}
	kind.is(true, nil)
	f.changed()
	return nil
}

// Ready returns nil once all kinds are filled, otherwise what they wait for.
func (f *Filling) Ready() error {
	var errs []error
	for _, kind := range f.kinds {
		if err := kind.ready(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", describe(kind.gvk), err))
		}
	}
	return errors.Join(errs...)
}

var errNotListed = errors.New("not listed yet")

func (k *filled) ready() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.synced:
		return nil
	case k.reason != nil:
		return k.reason
	}
	return errNotListed
}
