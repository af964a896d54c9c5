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

// kindsOf returns the kinds of schemes by the names that their resources have by convention.
func kindsOf(schemes []*runtime.Scheme) map[schema.GroupResource]string {
	kinds := map[schema.GroupResource]string{}
	for _, scheme := range schemes {
		for gvk := range scheme.AllKnownTypes() {
			if gvk.Version != runtime.APIVersionInternal && !strings.HasSuffix(gvk.Kind, "List") && !strings.HasSuffix(gvk.Kind, "Options") {
				resource, _ := meta.UnsafeGuessKindToResource(gvk)
				kinds[resource.GroupResource()] = gvk.Kind
			}
		}
	}
	return kinds
}

// ValidateKinds reports each rule of the webhooks for a resource of a kind that the handler
// does not read: such a webhook would reject every request. Kinds are looked up in schemes.
// Sub-resources, whose kinds differ, and resources of unknown kinds are ignored. Each error
// is a [FieldError].
func ValidateKinds(webhooks []Webhook, schemes ...*runtime.Scheme) error {
	kinds := kindsOf(schemes)
	var errs []error
	for _, webhook := range webhooks {
		errs = append(errs, webhook.validateKinds(kinds)...)
	}
	return errors.Join(errs...)
}

func (w Webhook) validateKinds(kinds map[schema.GroupResource]string) []error {
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
	return errs
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
