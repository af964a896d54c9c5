// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds are those of resources, found out from a scheme. Make them with [KindsOf].
type Kinds map[schema.GroupResource]string

// KindsOf returns the kinds of a scheme by the names that their resources have by
// convention.
func KindsOf(scheme *runtime.Scheme) Kinds {
	kinds := Kinds{}
	for gvk := range scheme.AllKnownTypes() {
		if gvk.Version != runtime.APIVersionInternal && !strings.HasSuffix(gvk.Kind, "List") && !strings.HasSuffix(gvk.Kind, "Options") {
			resource, _ := meta.UnsafeGuessKindToResource(gvk)
			kinds[resource.GroupResource()] = gvk.Kind
		}
	}
	return kinds
}

// ValidateKinds reports each rule for a resource of another kind than the handler reads:
// such a webhook would refuse every request. Sub-resources, whose kinds differ, and
// resources that are not among the kinds are not looked at. Each error is a [FieldError].
func (w Webhook) ValidateKinds(kinds Kinds) error {
	var errs []error
	for i, rule := range w.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				kind, known := kinds[schema.GroupResource{Group: group, Resource: resource}]
				for _, t := range targetsOf(w.Handler) {
					reads := t.kind
					if !t.exact.Empty() {
						reads = t.exact.Kind
					}
					if known && reads != "" && reads != kind {
						errs = append(errs, &FieldError{Webhook: w.Name, Field: fmt.Sprintf("rules[%d].resources", i), Err: fmt.Errorf(
							"%s are of kind %s, the handler reads %s: it would refuse each of them", resource, kind, t.name())})
					}
				}
			}
		}
	}
	return errors.Join(errs...)
}

// targetsOf returns what the typed handlers in a handler read.
func targetsOf(handler Handler) []*target {
	switch h := handler.(type) {
	case *mutator:
		return []*target{h.target}
	case *validator:
		return []*target{h.target}
	case *named:
		return targetsOf(h.Handler)
	case *chain:
		var all []*target
		for _, link := range h.links {
			all = append(all, targetsOf(link)...)
		}
		return all
	}
	return nil
}
