// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint/resourcenames"
)

// Resources are the resources of an API server.
type Resources = resourcenames.Set

func unknownResource() Rule {
	return Rule{
		ID: "unknown-resource", Group: groupMatching, Severities: []Severity{Error, Info}, Source: "practice",
		What: "The resources of rules exist, with their plural names and in the named group: those of Kubernetes, of CustomResourceDefinitions that were read, and with --cluster all.",
		Why:  "The API server accepts any name. The webhook is never called, and nothing reports it. A custom resource that a webhook asks for beside others may be optional: that is a note.",
		Fix:  "Use apiGroups and resources as 'kubectl api-resources' prints them, and \"\" for the core group.",
		check: func(c *checker) {
			if c.options.Resources == nil {
				c.skip("", "which resources the API server has is not known")
				return
			}
			known := withDefinitions(c.options.Resources, c.Inventory)
			for _, w := range c.webhooks {
				for _, gap := range known.Gaps(w.Rules) {
					switch {
					case gap.Problem == "":
						c.skip(w.title(), "the cluster has no group %s", gap.Group)
					case gap.Optional:
						c.webhook(w, Info, "rules", "%s", gap.Problem)
					default:
						c.webhook(w, Error, "rules", "%s", gap.Problem)
					}
				}
			}
		},
	}
}

// withDefinitions adds the resources of definitions that were read.
func withDefinitions(r *Resources, in *Inventory) *Resources {
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
