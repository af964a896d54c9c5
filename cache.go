// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport/internal/hosting/cached"
)

// CachedKind is a kind of objects that handlers read from a cache; see [WithCache].
type CachedKind = cached.Kind

// WithCache caches all objects of a kind, for handlers to read with [Cache]. It uses
// the cache of the controllers' manager, so each kind is listed and watched once per
// process. The application is not ready and calls no webhook until the cache has
// synced. The command manifests prints the rights that it needs (get, list, watch).
//
// Options are [Index], or functions that modify the cached content:
//
//	sallyport.WithCache(&v1.Book{},
//		sallyport.Index("isbn", func(b *v1.Book) []string { return []string{b.Spec.ISBN} }),
//		func(k *sallyport.CachedKind) { k.Transform = cache.TransformStripManagedFields() },
//	)
//
// What [WithManagerOptions] say of the kind in Cache.ByObject need not be said again.
//
// A cache always lags slightly behind, see "Reading other objects" in docs/webhooks.md.
func WithCache(object client.Object, options ...func(*CachedKind)) Option {
	return func(a *App) {
		a.manage = a.newManager
		kind := CachedKind{Object: object}
		for _, option := range options {
			option(&kind)
		}
		a.kinds = append(a.kinds, kind)
	}
}

// Index adds an index to [WithCache]. To list the objects for which values returns a
// value, use client.MatchingFields{name: value}. Values must not change the object.
func Index[T client.Object](name string, values func(T) []string) func(*CachedKind) {
	return cached.Index(name, values)
}

// Cache returns a reader of the kinds of [WithCache], for handlers with their context.
// Callers own the returned objects. Reading an undeclared kind or index is an error
// that says what to add. Like every error of a reader, it is a fault when a handler
// returns it.
func Cache(ctx context.Context) client.Reader { return cached.From(ctx) }

// CacheReader returns a reader that uses the [Cache] of each call's context. It is for
// handlers that take a reader when they are constructed.
func CacheReader() client.Reader { return cached.Late{} }

// Caches returns the cached kinds.
func (a *App) Caches() []CachedKind { return slices.Clone(a.kinds) }

func checkCaches(a *App) {
	if err := cached.Validate(a.Scheme(), a.kinds); err != nil {
		a.problems = append(a.problems, err)
	}
}

// rights returns the rights of the application's content, without serving and
// registration: cluster-wide, and by namespace.
func (a *App) rights() (rules []rbacv1.PolicyRule, in map[string][]rbacv1.PolicyRule) {
	rules, in = cached.PolicyRules(a.Scheme(), a.kinds, a.plural)
	return append(slices.Clone(a.rules), rules...), in
}

// plural returns the resource of a kind, from its CRD or guessed.
func (a *App) plural(gvk schema.GroupVersionKind) string {
	for _, crd := range a.crds {
		if crd != nil && crd.Spec.Group == gvk.Group && crd.Spec.Names.Kind == gvk.Kind {
			return crd.Spec.Names.Plural
		}
	}
	guessed, _ := meta.UnsafeGuessKindToResource(gvk)
	return guessed.Resource
}
