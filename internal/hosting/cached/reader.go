// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// reader reads what is declared, and nothing else: a manager's cache would begin to list and
// watch every kind that it is asked for, in the middle of a review.
type reader struct {
	scheme *runtime.Scheme
	kinds  map[schema.GroupVersionKind]Kind
	from   client.Reader
}

// NewReader returns a reader of these kinds, which were validated, from a cache of theirs.
func NewReader(scheme *runtime.Scheme, kinds []Kind, from client.Reader) (client.Reader, error) {
	r := &reader{scheme: scheme, kinds: map[schema.GroupVersionKind]Kind{}, from: from}
	for _, kind := range kinds {
		gvk, err := apiutil.GVKForObject(kind.Object, scheme)
		if err != nil {
			return nil, err
		}
		r.kinds[gvk] = kind
	}
	return r, nil
}

// Get reads an object of a kind that is declared.
func (r *reader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if _, err := r.declared(object, ""); err != nil {
		return err
	}
	return r.from.Get(ctx, key, object, options...)
}

// List reads objects of a kind that is declared, by indexes that are.
func (r *reader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	kind, err := r.declared(list, "List")
	if err != nil {
		return err
	}
	wanted := client.ListOptions{}
	wanted.ApplyOptions(options)
	if wanted.FieldSelector != nil {
		for _, requirement := range wanted.FieldSelector.Requirements() {
			if kind.Indexes[requirement.Field] == nil {
				return fmt.Errorf("the cache of %T has no index %q, but %s: add sallyport.Index(%q, …) to its WithCache",
					kind.Object, requirement.Field, names(kind.Indexes), requirement.Field)
			}
		}
	}
	return r.from.List(ctx, list, options...)
}

func names(indexes map[string]client.IndexerFunc) string {
	if len(indexes) == 0 {
		return "none"
	}
	return fmt.Sprintf("%q", slices.Sorted(maps.Keys(indexes)))
}

// declared is the kind of an object or, with a suffix, of a list.
func (r *reader) declared(object runtime.Object, suffix string) (*Kind, error) {
	gvk, err := apiutil.GVKForObject(object, r.scheme)
	if err != nil {
		return nil, fmt.Errorf("the cache: %w", err)
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, suffix)
	kind, ok := r.kinds[gvk]
	if !ok {
		var of any = object
		if single, err := r.scheme.New(gvk); suffix != "" && form(object) == "typed" && err == nil {
			of = single
		}
		return nil, fmt.Errorf("%s is not cached: add %s to the application", describe(gvk), declaration(of))
	}
	if form(object) != form(kind.Object) {
		return nil, fmt.Errorf("%s is cached as %T and read as %T, which would be a second copy: read it as it is cached", describe(gvk), kind.Object, object)
	}
	return &kind, nil
}

type contextKey struct{}

// NewContext returns a context whose cache is the reader.
func NewContext(ctx context.Context, reader client.Reader) context.Context {
	return context.WithValue(ctx, contextKey{}, reader)
}

// errNoCache is what handlers read that have none.
var errNoCache = errors.New("there is no cache: declare what handlers read with sallyport.WithCache, run the application, and read with the context that the handler was called with")

// From is the cache of a context. One that has none returns a reader that always fails.
func From(ctx context.Context) client.Reader {
	if reader, ok := ctx.Value(contextKey{}).(client.Reader); ok {
		return reader
	}
	return none{}
}

type none struct{}

func (none) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errNoCache
}

func (none) List(context.Context, client.ObjectList, ...client.ListOption) error { return errNoCache }

// Late reads from the cache of the context that it is called with.
type Late struct{}

// Get implements [client.Reader].
func (Late) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return From(ctx).Get(ctx, key, object, options...)
}

// List implements [client.Reader].
func (Late) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return From(ctx).List(ctx, list, options...)
}
