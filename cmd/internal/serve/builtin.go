// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/author"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/counts"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/reports"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/status"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/usage"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/imagepull"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/projectlimit"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/servicetype"
	"github.com/sallyport-io/sallyport/internal/store"
)

// Builtin is a built-in webhook: a folder below webhooks/. It may define several webhooks that
// belong together.
type Builtin struct {
	Name  string // of the folder, and in a configuration
	Short string // one line
	Docs  string // its page, relative to the root of the repository

	// webhooks defines it, given its sources.
	webhooks func(*Settings, Sources) ([]admission.Webhook, error)
	// watch watches the objects that it reads; nil if it reads none.
	watch func(frontdoor.Environment, *store.Factory, *Config) (watcher, error)
	// rights are the rules that watch needs; moreRights are needed only with some settings, nil
	// for none.
	rights     []rbacv1.PolicyRule
	moreRights func(*Settings) []rbacv1.PolicyRule
	// rightsIn are the rules that some settings need in some namespaces; nil for none.
	rightsIn func(*Settings) map[string][]rbacv1.PolicyRule
	// needs returns an error while objects that the settings name have not been read; nil if
	// settings never name objects.
	needs func(*Settings, Sources) error
	// widen changes settings so that they define every webhook that any settings can define;
	// nil if the defaults do.
	widen func(*Settings)
}

// Default returns the definitions with the default settings, for documentation and validation.
// They are never called.
func (b Builtin) Default() ([]admission.Webhook, error) {
	settings := DefaultSettings()
	return b.webhooks(&settings, NoSources())
}

// Settings are the settings of all built-in webhooks.
type Settings struct {
	PodDefault   PodDefaultSettings
	ImagePull    imagepull.Settings
	ServiceType  servicetype.Settings
	ProjectLimit projectlimit.Settings
	Dataset      dataset.Settings
}

// settings are the settings of one built-in webhook, with JSON field names.
type settings interface{ Validate() error }

// of returns a pointer to the settings of a built-in webhook, or nil for an unknown name.
func (s *Settings) of(name string) settings {
	switch name {
	case "poddefault":
		return &s.PodDefault
	case "imagepull":
		return &s.ImagePull
	case "servicetype":
		return &s.ServiceType
	case "projectlimit":
		return &s.ProjectLimit
	case "dataset":
		return &s.Dataset
	}
	return nil
}

// DefaultSettings returns the default settings.
func DefaultSettings() Settings {
	s := Settings{
		PodDefault:   defaultPodDefaultSettings(),
		ImagePull:    imagepull.DefaultSettings(),
		ServiceType:  servicetype.DefaultSettings(),
		ProjectLimit: projectlimit.DefaultSettings(),
		Dataset:      dataset.DefaultSettings(),
	}
	s.Dataset.FromEnvironment(os.Getenv)
	return s
}

// Sources are what built-in webhooks read from.
type Sources struct {
	PodDefaults match.Source
	Authors     author.Authorizer
	Classes     author.Classes    // nil where there is no cluster to ask
	Neighbours  author.Neighbours // nil without neighbours to notify
	Projects    projectlimit.Source
	Datasets    dataset.Source

	counts  *counts.Counts // nil if metrics are not exposed
	indexes *indexes       // nil: every index exists
	// findings records what reports tell; nil without reports.
	findings *reports.Recorder
	// observePlugin counts the outcomes for pods; nil to count nothing.
	observePlugin dataset.Observer
}

// NoSources returns empty sources, for definitions that are never called.
func NoSources() Sources {
	return Sources{PodDefaults: source.NewIndex(), Authors: Anybody{}, Projects: projectlimit.NewIndex(), Datasets: dataset.NewIndex()}
}

// watcher watches objects in a cluster. It backs a part of Sources.
type watcher struct {
	sources Sources
	what    string // what it counts, for the log and the metric's name
	help    string
	ready   func() error
	run     func(context.Context) error
	count   func() int
	contact func() time.Time // the time of the last message from the API server; may be nil
}

// Builtins returns the built-in webhooks. Mutating webhooks are called in this order.
func Builtins() []Builtin {
	return []Builtin{
		{
			Name:  "poddefault",
			Short: "inject the PodDefaults of the namespace into pods",
			Docs:  "docs/poddefault.md",
			webhooks: func(s *Settings, from Sources) ([]admission.Webhook, error) {
				beside := besidePodDefaults(s, from)
				injects, err := poddefault.New(from.PodDefaults, s.PodDefault.Settings, beside...)
				if err != nil {
					return nil, err
				}
				excluded, err := poddefault.NewExcluded(from.PodDefaults, s.PodDefault.Settings, beside...)
				judges, errAuthor := author.New(from.Authors, from.Neighbours, s.PodDefault.Authorize)
				if from.Classes != nil {
					judges.Handler = author.WarnOfClasses(judges.Handler, from.Classes)
				}
				all := []admission.Webhook{guarded(injects, &s.PodDefault, from), excluded, judges}
				if err := errors.Join(err, errAuthor); err != nil || !s.PodDefault.Exempts() {
					return all, err
				}
				exempts, err := author.NewExempt(from.Authors, s.PodDefault.MaxExemption.Duration)
				return append(all, exempts), err
			},
			watch: func(env frontdoor.Environment, cluster *store.Factory, c *Config) (watcher, error) {
				w, err := source.Watch(cluster, source.WatchOptions{
					DataConnections: c.Settings.PodDefault.DataConnections, Exempts: c.Settings.PodDefault.Exempts(), Recorded: selects(c.Controllers, status.Name),
				}, env.Logger, env.Changed)
				if err != nil {
					return watcher{}, err
				}
				authors, err := authorsOf(env.Client)
				if err != nil {
					return watcher{}, err
				}
				classes, err := classesOf(env.Client)
				if err != nil {
					return watcher{}, err
				}
				counted, err := counts.NewCounts(env.Metrics, w.Known)
				if err != nil {
					return watcher{}, err
				}
				return watcher{
					sources: Sources{PodDefaults: w, Authors: authors, Classes: classes, Neighbours: w, counts: counted}, what: "poddefaults", help: "PodDefaults and ClusterPodDefaults known to this server.",
					ready: w.Ready, run: w.Run, count: w.Len, contact: w.LastContact,
				}, nil
			},
			rights: []rbacv1.PolicyRule{
				{APIGroups: []string{kubeflowv1alpha1.GroupName}, Resources: []string{kubeflowv1alpha1.PodDefaultResource}, Verbs: []string{"list", "watch"}},
				{
					APIGroups: []string{sallyportv1alpha1.GroupName},
					Resources: []string{sallyportv1alpha1.ClusterPodDefaultResource, sallyportv1alpha1.ExemptionResource}, Verbs: []string{"list", "watch"},
				},
				{
					APIGroups: []string{sallyportv1alpha1.GroupName},
					Resources: []string{sallyportv1alpha1.PodDefaultRevisionResource, sallyportv1alpha1.ClusterPodDefaultRevisionResource},
					Verbs:     []string{"list", "watch"},
				},
				{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}}, // their labels
			},
			moreRights: func(s *Settings) []rbacv1.PolicyRule {
				return slices.Concat(authorRights(s), classRights, connectionRights(s))
			},
			widen: func(s *Settings) { s.PodDefault.MaxExemption.Duration = 1 },
		},
		{
			Name:  "imagepull",
			Short: "always pull images, from allowed registries, by a version",
			Docs:  "docs/webhooks/imagepull.md",
			webhooks: func(s *Settings, _ Sources) ([]admission.Webhook, error) {
				return imagepull.New(s.ImagePull)
			},
		},
		{
			Name:  "servicetype",
			Short: "refuse load balancers, node ports, external names and IPs",
			Docs:  "docs/webhooks/servicetype.md",
			webhooks: func(s *Settings, _ Sources) ([]admission.Webhook, error) {
				return servicetype.New(s.ServiceType)
			},
		},
		{
			Name:  "projectlimit",
			Short: "give each requester at most so many projects",
			Docs:  "docs/webhooks/projectlimit.md",
			webhooks: func(s *Settings, from Sources) ([]admission.Webhook, error) {
				return projectlimit.New(from.Projects, s.ProjectLimit)
			},
			watch: func(env frontdoor.Environment, cluster *store.Factory, _ *Config) (watcher, error) {
				w, err := projectlimit.Watch(cluster, env.Changed)
				if err != nil {
					return watcher{}, err
				}
				return watcher{
					sources: Sources{Projects: w}, what: "projects", help: "Namespaces known to this server that count for a requester.",
					ready: w.Ready, run: w.Run, count: w.Len,
				}, nil
			},
			rights: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}}},
		},
		datasetBuiltin(),
	}
}

// besidePodDefaults returns the features beside the core of the webhooks for PodDefaults.
func besidePodDefaults(s *Settings, from Sources) (beside []poddefault.Feature) {
	if s.PodDefault.Usage == poddefault.UsageCheck {
		beside = append(beside, poddefault.WithUsage(usage.New(from.Authors)))
	}
	if from.counts != nil {
		beside = append(beside, poddefault.WithDecisions(from.counts.Count))
	}
	if from.findings != nil {
		beside = append(beside, poddefault.WithFindings(from.findings.Record))
	}
	return beside
}

// enabledByDefault preserves existing installations: new webhooks are opt-in.
const enabledByDefault = "poddefault"

// Enabled returns the enabled webhooks in call order.
func (c *Config) Enabled() []Builtin {
	var out []Builtin
	for _, b := range Builtins() {
		if c.Has(b.Name) {
			out = append(out, b)
		}
	}
	return out
}

// Define defines the enabled webhooks. serve, review and manifests share it.
func (c *Config) Define(from Sources) ([]admission.Webhook, error) {
	var webhooks []admission.Webhook
	var errs []error
	for _, b := range c.Enabled() {
		more, err := b.defined(c, from)
		if err != nil {
			errs = append(errs, fmt.Errorf("webhook %s: %w", b.Name, err))
		}
		webhooks = append(webhooks, more...)
	}
	return webhooks, errors.Join(errs...)
}

// Rights returns the rules that the enabled webhooks and controllers need to read from a
// cluster and to write status, without duplicates.
func (c *Config) Rights() []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, b := range c.Enabled() {
		rules = distinct(rules, b.rights)
		if b.moreRights != nil {
			rules = distinct(rules, b.moreRights(&c.Settings))
		}
	}
	for _, controller := range c.enabledControllers() {
		rules = distinct(rules, controller.rights)
	}
	return rules
}

// RightsIn returns the rules needed in single namespaces.
func (c *Config) RightsIn() map[string][]rbacv1.PolicyRule {
	rules := map[string][]rbacv1.PolicyRule{}
	for _, b := range c.Enabled() {
		if b.rightsIn != nil {
			for namespace, more := range b.rightsIn(&c.Settings) {
				rules[namespace] = distinct(rules[namespace], more)
			}
		}
	}
	return rules
}

// Paths returns the paths of the enabled webhooks, for any settings of their own.
func (c *Config) Paths() ([]string, error) {
	widened := *c
	widened.Settings = DefaultSettings()
	for _, b := range c.Enabled() {
		if b.widen != nil {
			b.widen(&widened.Settings)
		}
	}
	webhooks, err := widened.Define(NoSources())
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, webhook := range webhooks {
		paths = append(paths, webhook.Path)
	}
	slices.Sort(paths)
	return paths, nil
}

// distinct joins rules without duplicates: a controller may read the same objects as its
// webhook.
func distinct(lists ...[]rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, rule := range slices.Concat(lists...) {
		if !slices.ContainsFunc(out, func(known rbacv1.PolicyRule) bool { return reflect.DeepEqual(known, rule) }) {
			out = append(out, rule)
		}
	}
	return out
}

// Names returns the names of all built-in webhooks.
func Names() []string {
	var names []string
	for _, b := range Builtins() {
		names = append(names, b.Name)
	}
	return names
}
