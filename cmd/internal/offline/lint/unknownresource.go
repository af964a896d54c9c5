// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint/policyrules"
)

// Resources are the resources of an API server.
type Resources struct {
	// ByGroup has plural names by group, "" for the core group. Subresources
	// ("pods/binding") are included if any of the group are known. A group without
	// names is unknown.
	ByGroup map[string][]string
	// Complete is set if there are no other groups.
	Complete bool
	// Versions are all resources with their kinds, without subresources.
	Versions []policyrules.Resource
}

func unknownResource() Rule {
	return Rule{
		ID: "unknown-resource", Group: groupMatching, Severities: []Severity{Error}, Source: "practice",
		What: "The resources of rules exist, with their plural names and in the named group: those of Kubernetes, of CustomResourceDefinitions that were read, and with --cluster all.",
		Why:  "The API server accepts any name. The webhook is never called, and nothing reports it.",
		Fix:  "Use apiGroups and resources as 'kubectl api-resources' prints them, and \"\" for the core group.",
		check: func(c *checker) {
			if c.options.Resources == nil {
				c.skip("", "which resources the API server has is not known")
				return
			}
			known := c.options.Resources.with(c.Inventory)
			for _, w := range c.webhooks {
				for _, rule := range w.Rules {
					for _, group := range rule.APIGroups {
						for _, resource := range rule.Resources {
							if !known.has(group) {
								c.skip(w.title(), "the cluster has no group %s", group)
							} else if problem := known.lacks(group, resource); problem != "" {
								c.webhook(w, Error, "rules", "%s", problem)
							}
						}
					}
				}
			}
		},
	}
}

// with adds the resources of definitions that were read.
func (r *Resources) with(in *Inventory) *Resources {
	out := &Resources{ByGroup: map[string][]string{}, Complete: r.Complete}
	for group, names := range r.ByGroup {
		out.ByGroup[group] = slices.Clone(names)
	}
	if r.Complete {
		return out // already included
	}
	for _, d := range in.definitions {
		group, names := d.value.Spec.Group, d.value.Spec.Names
		if _, partly := out.ByGroup[group]; !partly {
			out.ByGroup[group] = nil // other files may have others of the group
		}
		if len(out.ByGroup[group]) > 0 {
			out.ByGroup[group] = append(out.ByGroup[group], names.Plural)
		}
	}
	return out
}

// has reports whether the group exists or may exist. A missing group is no problem: a
// configuration may be for clusters with and without it.
func (r *Resources) has(group string) bool {
	_, there := r.ByGroup[group]
	return there || !r.Complete || group == "*"
}

// lacks returns what is wrong with a resource of a rule, or "" if nothing is or it is
// unknown.
func (r *Resources) lacks(group, resource string) string {
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
func (r *Resources) similar(group, resource string) string {
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
