// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/admission"
)

// checkResources reports resources of rules that are almost those of a known kind: its
// singular, or one letter off. The API server accepts any name and never calls the webhook.
// Other unknown names may be of CustomResourceDefinitions that only the cluster has.
func checkResources(a *App) {
	kinds := kindsByGroup(a)
	for _, webhook := range a.webhooks {
		for i, rule := range webhook.Rules {
			for _, resource := range rule.Resources {
				plural, _, _ := strings.Cut(resource, "/")
				if slices.Contains(a.plurals, plural) {
					continue
				}
				if right := meant(kinds, rule.APIGroups, plural); right != "" {
					a.problems = append(a.problems, &admission.FieldError{
						Webhook: webhook.Name, Field: fmt.Sprintf("rules[%d].resources", i), Err: fmt.Errorf(
							"%q is not known, write %q; if it is the plural of another kind, add its definition with WithCRDs",
							resource, right+strings.TrimPrefix(resource, plural)),
					})
				}
			}
		}
	}
}

// kindsByGroup returns the resources of the kinds in the schemes, and of the definitions, with
// their kinds in lower case.
func kindsByGroup(a *App) map[string]map[string]string {
	groups := map[string]map[string]string{}
	add := func(group, plural, kind string) {
		if groups[group] == nil {
			groups[group] = map[string]string{}
		}
		groups[group][plural] = strings.ToLower(kind)
	}
	for _, scheme := range knownSchemes(a) {
		for gvk := range scheme.AllKnownTypes() {
			if gvk.Version != runtime.APIVersionInternal && !strings.HasSuffix(gvk.Kind, "List") && !strings.HasSuffix(gvk.Kind, "Options") {
				add(gvk.Group, a.plural(schema.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}), gvk.Kind)
			}
		}
	}
	for _, crd := range a.crds {
		if crd != nil {
			add(crd.Spec.Group, crd.Spec.Names.Plural, crd.Spec.Names.Kind)
		}
	}
	return groups
}

// meant returns the resource that was meant by a name that none of the groups has.
func meant(kinds map[string]map[string]string, groups []string, name string) string {
	right := ""
	for _, group := range groups {
		if _, known := kinds[group][name]; known {
			return ""
		}
		for _, plural := range slices.Sorted(maps.Keys(kinds[group])) {
			if right == "" && (kinds[group][plural] == name || oneOff(plural, name)) {
				right = plural
			}
		}
	}
	return right
}

// oneOff reports whether two names differ by one letter that is missing, added, replaced or
// exchanged with its neighbor.
func oneOff(a, b string) bool {
	if len(a) < len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(b) && a[i] == b[i] {
		i++
	}
	switch len(a) - len(b) {
	case 0:
		return i < len(a) && (a[i+1:] == b[i+1:] || i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:])
	case 1:
		return a[i+1:] == b[i:]
	}
	return false
}
