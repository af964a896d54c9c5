// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"slices"
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

// kindProblems reports each rule for a resource of a kind that the handler does not read.
func (w Webhook) kindProblems(kinds map[schema.GroupResource]string) []error {
	var errs []error
	for i, rule := range w.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				kind, read, known := kindRead(kinds, schema.GroupResource{Group: group, Resource: resource})
				for _, t := range targetsOf(w.Handler) {
					reads := t.kind
					if !t.exact.Empty() {
						reads = t.exact.Kind
					}
					if known && reads != "" && reads != kind {
						errs = append(errs, &FieldError{Webhook: w.Name, Field: fmt.Sprintf("rules[%d].resources", i), Err: fmt.Errorf(
							"%s are of kind %s, the handler reads %s: it would refuse each of them; let it take a %s, or correct the rule", resource, kind, t.name(), read)})
					}
				}
			}
		}
	}
	return errs
}

// subresourceKinds are the types of Kubernetes' sub-resources that are not their parent's.
var subresourceKinds = map[schema.GroupResource]string{
	{Resource: "pods/attach"}:           "corev1.PodAttachOptions",
	{Resource: "pods/binding"}:          "corev1.Binding",
	{Resource: "pods/eviction"}:         "policyv1.Eviction",
	{Resource: "pods/exec"}:             "corev1.PodExecOptions",
	{Resource: "pods/portforward"}:      "corev1.PodPortForwardOptions",
	{Resource: "pods/proxy"}:            "corev1.PodProxyOptions",
	{Resource: "nodes/proxy"}:           "corev1.NodeProxyOptions",
	{Resource: "services/proxy"}:        "corev1.ServiceProxyOptions",
	{Resource: "serviceaccounts/token"}: "authenticationv1.TokenRequest",
}

// parentsKind are sub-resources with the kind of their parent.
var parentsKind = []string{"status", "ephemeralcontainers", "resize", "finalize", "approval"}

// kindRead returns the kind of a resource or sub-resource, and the type to read it with.
func kindRead(kinds map[schema.GroupResource]string, resource schema.GroupResource) (kind, read string, known bool) {
	if read, known = subresourceKinds[resource]; known {
		return read[strings.Index(read, ".")+1:], "*" + read, true
	}
	parent, sub, isSub := strings.Cut(resource.Resource, "/")
	switch {
	case sub == "scale" && parent != "*":
		return "Scale", "*autoscalingv1.Scale", true
	case isSub && !slices.Contains(parentsKind, sub):
		return "", "", false
	}
	kind, known = kinds[schema.GroupResource{Group: resource.Group, Resource: parent}]
	return kind, kind, known
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
