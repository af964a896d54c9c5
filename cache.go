// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport/internal/cached"
)

// CachedKind is a kind of objects that handlers read from memory; see [WithCache].
type CachedKind = cached.Kind

// WithCache keeps a copy of all objects of a kind, for handlers to read by [Cache]. The copy is
// that of the controllers' manager: it is listed and watched once in a process. The application is
// not ready, and no webhook called, before the copy is there. Its rights (get, list, watch) are
// printed by the command manifests.
//
// Options are [Index], or functions that change what is kept:
//
//	sallyport.WithCache(&v1.Book{},
//		sallyport.Index("isbn", func(b *v1.Book) []string { return []string{b.Spec.ISBN} }),
//		func(k *sallyport.CachedKind) { k.Transform = cache.TransformStripManagedFields() },
//	)
//
// A copy is always a little behind, see "Reading other objects" in docs/webhooks.md.
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

// Index has [WithCache] find objects by values: readers list with client.MatchingFields{name: value}
// those for which values returned that value. Values must not change the object.
func Index[T client.Object](name string, values func(T) []string) func(*CachedKind) {
	return cached.Index(name, values)
}

// Cache reads what [WithCache] declares, in a handler with its context. Objects that it returns are
// the reader's own. A kind or an index that is not declared is an error that says what to add; as
// every error of a reader, it is a fault when a handler returns it.
func Cache(ctx context.Context) client.Reader { return cached.From(ctx) }

// CacheReader reads, at each call, from the [Cache] of the context that the call has. It is for
// handlers that are given a reader when they are made.
func CacheReader() client.Reader { return cached.Late{} }

// Caches are the kinds that are cached.
func (a *App) Caches() []CachedKind { return slices.Clone(a.kinds) }

func (a *App) checkCaches() {
	if err := cached.Validate(a.Scheme(), a.kinds); err != nil {
		a.problems = append(a.problems, err)
	}
}

// rights are those of what the application consists of, besides serving and registration: in the
// cluster, and in namespaces.
func (a *App) rights() (rules []rbacv1.PolicyRule, in map[string][]rbacv1.PolicyRule) {
	rules, in = cached.PolicyRules(a.Scheme(), a.kinds, a.plural)
	return append(slices.Clone(a.rules), rules...), in
}

// plural is the resource of a kind: that of its definition, or the one that is guessed.
func (a *App) plural(gvk schema.GroupVersionKind) string {
	for _, crd := range a.crds {
		if crd.Spec.Group == gvk.Group && crd.Spec.Names.Kind == gvk.Kind {
			return crd.Spec.Names.Plural
		}
	}
	guessed, _ := meta.UnsafeGuessKindToResource(gvk)
	return guessed.Resource
}
