// SPDX-License-Identifier: Apache-2.0

package serve

import (
	rbacv1 "k8s.io/api/rbac/v1"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/projectlimit"
)

// ProjectLimitSources are what projectlimit reads from.
type ProjectLimitSources struct{ Projects projectlimit.Source }

func (ProjectLimitSources) of() string { return "projectlimit" }

func projectLimitBuiltin() Builtin {
	return Builtin{
		Name:  "projectlimit",
		Short: "give each requester at most so many projects",
		Docs:  "docs/webhooks/projectlimit.md",
		settings: func() settings {
			s := projectlimit.DefaultSettings()
			return &s
		},
		none: func() Sourced { return ProjectLimitSources{projectlimit.NewIndex()} },
		webhooks: func(c *Config, from Sources) ([]admission.Webhook, error) {
			return projectlimit.New(sourcesOf[ProjectLimitSources](from).Projects, *c.Settings["projectlimit"].(*projectlimit.Settings))
		},
		watch: func(b *liveBuiltin, env frontdoor.Environment) (watcher, error) {
			w, err := projectlimit.Watch(b.config.cluster, env.Changed)
			if err != nil {
				return watcher{}, err
			}
			return watcher{
				sources: ProjectLimitSources{w}, what: "projects", help: "Namespaces known to this server that count for a requester.",
				ready: w.Ready, run: w.Run, count: w.Len,
			}, nil
		},
		rights: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}}},
	}
}
