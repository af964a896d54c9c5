// SPDX-License-Identifier: Apache-2.0

// Package resourcenames finds names in rules that no resource has.
package resourcenames

import (
	"slices"
	"strings"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint/policyrules"
)

// A Set is the resources of an API server.
type Set struct {
	// ByGroup has plural names by group, "" for the core group. Subresources
	// ("pods/binding") are included if any of the group are known. A group without
	// names is unknown.
	ByGroup map[string][]string
	// Complete is set if there are no other groups.
	Complete bool
	// Versions are all resources with their kinds, without subresources.
	Versions []policyrules.Resource
}

// Has reports whether the group exists or may exist. A missing group is no problem: a
// configuration may be for clusters with and without it.
func (r *Set) Has(group string) bool {
	_, there := r.ByGroup[group]
	return there || !r.Complete || group == "*"
}

// Lacks returns what is wrong with a resource of a rule, or "" if nothing is or it is
// unknown.
func (r *Set) Lacks(group, resource string) string {
	base, sub, _ := strings.Cut(resource, "/")
	if base == "*" || base == "" {
		return ""
	}
	if group == "*" {
		if !r.Complete {
			return ""
		}
		for _, names := range r.ByGroup {
			if len(names) == 0 || slices.Contains(names, base) {
				return ""
			}
		}
		return "no group has the resource " + base
	}
	title := "group " + group
	if group == "" {
		title = "the core group"
	}
	names := r.ByGroup[group]
	switch {
	case len(names) == 0:
		return ""
	case !slices.Contains(names, base):
		problem := title + " has no resource " + base
		if similar := r.similar(group, base); similar != "" {
			problem += "; did you mean " + similar + "?"
		}
		return problem
	case sub != "" && sub != "*" && hasSubresources(names) && !slices.Contains(names, resource):
		return title + " has no sub-resource " + resource
	}
	return ""
}

func hasSubresources(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, "/") })
}

// similar suggests the intended resource: singular or plural, other capitals, or
// another group.
func (r *Set) similar(group, resource string) string {
	lower := strings.ToLower(resource)
	for _, guess := range []string{lower, lower + "s", lower + "es", strings.TrimSuffix(lower, "y") + "ies"} {
		if slices.Contains(r.ByGroup[group], guess) {
			return guess
		}
	}
	var groups []string
	for other, names := range r.ByGroup {
		if slices.Contains(names, resource) {
			groups = append(groups, other)
		}
	}
	slices.Sort(groups)
	if len(groups) == 0 {
		return ""
	}
	if groups[0] == "" {
		return resource + ` of the core group ("")`
	}
	return resource + " of " + groups[0]
}
