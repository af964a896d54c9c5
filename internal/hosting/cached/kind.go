// SPDX-License-Identifier: Apache-2.0

// Package cached is the cache that handlers read: the kinds that an application declares, how
// they are filled by a manager's informers, and how handlers reach them.
package cached

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Kind is a kind of objects that an application keeps a copy of.
type Kind struct {
	// Object is one of the kind, without content. Its type is the one that the kind is read
	// by: a pointer to an API type or, with the kind set, *unstructured.Unstructured or
	// *metav1.PartialObjectMetadata.
	Object client.Object
	// ByObject says what is kept. Transform makes objects smaller before they are kept: give it
	// cache.TransformStripManagedFields(), or a function that removes what no reader needs.
	// Label, Field and Namespaces restrict which objects are kept.
	cache.ByObject
	// Indexes find objects by values, by the names of the indexes; see [Index].
	Indexes map[string]client.IndexerFunc

	problems []error
}

// Index adds an index to a kind: readers list with client.MatchingFields{name: value} the objects
// for which values returned that value. Values is called with objects as they are kept, and must
// not change them.
func Index[T client.Object](name string, values func(T) []string) func(*Kind) {
	return func(k *Kind) {
		var object T
		_, same := k.Object.(T)
		switch {
		case name == "":
			k.problems = append(k.problems, errors.New("an index has no name"))
		case values == nil:
			k.problems = append(k.problems, fmt.Errorf("index %q: the function that returns the values is missing", name))
		case !same:
			k.problems = append(k.problems, fmt.Errorf("index %q is for %T", name, object))
		case k.Indexes[name] != nil:
			k.problems = append(k.problems, fmt.Errorf("two indexes have the name %q", name))
		default:
			if k.Indexes == nil {
				k.Indexes = map[string]client.IndexerFunc{}
			}
			k.Indexes[name] = func(object client.Object) []string { return values(object.(T)) } // an informer has one type
		}
	}
}

// Validate reports every problem of kinds: of each one, and two of the same kind.
func Validate(scheme *runtime.Scheme, kinds []Kind) error {
	var errs []error
	seen := map[schema.GroupVersionKind]bool{}
	for i, kind := range kinds {
		if kind.Object == nil {
			errs = append(errs, fmt.Errorf("cache %d: the object is nil", i+1))
			continue
		}
		for _, problem := range kind.problems {
			errs = append(errs, fmt.Errorf("cache of %T: %w", kind.Object, problem))
		}
		gvk, err := apiutil.GVKForObject(kind.Object, scheme)
		switch {
		case runtime.IsNotRegisteredError(err):
			errs = append(errs, fmt.Errorf("cache of %T: the type is not in the scheme: add it with its package's AddToScheme, and give the scheme by WithScheme or WithTypes", kind.Object))
		case err != nil && !runtime.IsMissingKind(err):
			errs = append(errs, fmt.Errorf("cache of %T: %w", kind.Object, err))
		case gvk.Kind == "" || gvk.Version == "":
			errs = append(errs, fmt.Errorf("cache of %T: the object has no kind: set its apiVersion and kind", kind.Object))
		case seen[gvk]:
			errs = append(errs, fmt.Errorf("there are two caches of %s: each kind has one, with all its indexes", describe(gvk)))
		}
		seen[gvk] = true
	}
	return errors.Join(errs...)
}

// describe names a kind as people do.
func describe(gvk schema.GroupVersionKind) string {
	return gvk.Kind + " of " + gvk.GroupVersion().String()
}

// form tells which of a manager's informers an object, or a list, is read from.
func form(object runtime.Object) string {
	switch object.(type) {
	case runtime.Unstructured:
		return "unstructured"
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return "metadata"
	}
	return "typed"
}

// declaration is the code that declares a kind.
func declaration(object any) string {
	return fmt.Sprintf("sallyport.WithCache(&%s{})", strings.TrimPrefix(fmt.Sprintf("%T", object), "*"))
}

// PolicyRules are the rights to keep copies of kinds, which were validated: everywhere, or only in
// the namespaces that they are kept of. Plural tells the resource of a kind.
func PolicyRules(scheme *runtime.Scheme, kinds []Kind, plural func(schema.GroupVersionKind) string) (rules []rbacv1.PolicyRule, in map[string][]rbacv1.PolicyRule) {
	for _, kind := range kinds {
		gvk, err := apiutil.GVKForObject(kind.Object, scheme)
		if err != nil {
			continue // it was validated
		}
		rule := rbacv1.PolicyRule{APIGroups: []string{gvk.Group}, Resources: []string{plural(gvk)}, Verbs: []string{"get", "list", "watch"}}
		if _, all := kind.Namespaces[metav1.NamespaceAll]; all || len(kind.Namespaces) == 0 {
			rules = append(rules, rule)
			continue
		}
		for _, namespace := range slices.Sorted(maps.Keys(kind.Namespaces)) {
			if in == nil {
				in = map[string][]rbacv1.PolicyRule{}
			}
			in[namespace] = append(in[namespace], rule)
		}
	}
	return rules, in
}
