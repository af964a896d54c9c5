// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	configv1alpha1 "github.com/sallyport-io/sallyport/api/config/v1alpha1"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/webhooks/dataset"
	"github.com/sallyport-io/sallyport/webhooks/imagepull"
	"github.com/sallyport-io/sallyport/webhooks/poddefault"
	"github.com/sallyport-io/sallyport/webhooks/poddefault/author"
	"github.com/sallyport-io/sallyport/webhooks/projectlimit"
	"github.com/sallyport-io/sallyport/webhooks/servicetype"
)

// builtin is a ready-made webhook: a folder below webhooks/, which may define
// several that belong together.
type builtin struct {
	name  string // of the folder, and in --webhooks
	short string // what it does, in a line
	docs  string // its page, from the top of the repository
	// webhooks defines it over what it reads.
	webhooks func(*builtinSettings, builtinSources) ([]admission.Webhook, error)
	// watch follows in a cluster what it reads; nil if it reads nothing.
	watch func(frontdoor.Environment) (watcher, error)
	// rights are those that watch needs; moreRights are those that it needs with some
	// settings only, nil for none.
	rights     []rbacv1.PolicyRule
	moreRights func(*builtinSettings) []rbacv1.PolicyRule
	// rightsIn are those that it needs with some settings in some namespaces; nil for none.
	rightsIn func(*builtinSettings) map[string][]rbacv1.PolicyRule
	// needs tells what of that which some settings name is not read yet; nil if they name
	// nothing.
	needs func(*builtinSettings, builtinSources) error
	// widen makes settings define all webhooks that any settings define; nil if the
	// defaults do.
	widen func(*builtinSettings)
}

// builtinSettings are those of all ready-made webhooks.
type builtinSettings struct {
	podDefault   podDefaultSettings
	imagePull    imagepull.Settings
	serviceType  servicetype.Settings
	projectLimit projectlimit.Settings
	dataset      dataset.Settings

	// entries are those of a configuration; the flags for all webhooks count before
	// them if they were given.
	entries                   []*configv1alpha1.Webhook
	policyGiven, timeoutGiven bool
}

// settings are those of one ready-made webhook, with the names of fields in a file.
type settings interface{ Validate() error }

// of returns a pointer to the settings of a ready-made webhook; nil if there is none
// of that name.
func (s *builtinSettings) of(name string) settings {
	switch name {
	case "poddefault":
		return &s.podDefault
	case "imagepull":
		return &s.imagePull
	case "servicetype":
		return &s.serviceType
	case "projectlimit":
		return &s.projectLimit
	case "dataset":
		return &s.dataset
	}
	return nil
}

func defaultBuiltinSettings() builtinSettings {
	s := builtinSettings{
		podDefault:   defaultPodDefaultSettings(),
		imagePull:    imagepull.DefaultSettings(),
		serviceType:  servicetype.DefaultSettings(),
		projectLimit: projectlimit.DefaultSettings(),
		dataset:      dataset.DefaultSettings(),
	}
	s.dataset.FromEnvironment(os.Getenv)
	return s
}

// builtinSources are what ready-made webhooks read from.
type builtinSources struct {
	podDefaults poddefault.Source
	authors     author.Authorizer
	neighbours  author.Neighbours  // nil where nobody is told
	counts      *poddefault.Counts // nil where nobody looks at metrics
	indexes     *indexes           // nil: they are there
	projects    projectlimit.Source
	datasets    dataset.Source
	// observePlugin counts what becomes of pods; nil for nobody.
	observePlugin dataset.Observer
}

// noSources knows of nothing: for definitions that nobody calls.
func noSources() builtinSources {
	return builtinSources{podDefaults: poddefault.NewIndex(), authors: anybody{}, projects: projectlimit.NewIndex(), datasets: dataset.NewIndex()}
}

// watcher follows something in a cluster, and is part of builtinSources.
type watcher struct {
	sources builtinSources
	what    string // what is counted, for the log and the metric's name
	help    string
	ready   func() error
	run     func(context.Context) error
	count   func() int
	contact func() time.Time // when the API server has sent something the last time; may be nil
}

// builtins are the ready-made webhooks by name. Mutating ones are called in this
// order.
func builtins() []builtin {
	return []builtin{
		{
			name:  "poddefault",
			short: "add to pods what the PodDefaults of their namespace say",
			docs:  "docs/poddefault.md",
			webhooks: func(s *builtinSettings, from builtinSources) ([]admission.Webhook, error) {
				injects, err := poddefault.New(from.podDefaults, s.podDefault.Settings)
				if err != nil {
					return nil, err
				}
				excluded, err := poddefault.NewExcluded(from.podDefaults, s.podDefault.Settings)
				if from.counts != nil {
					injects.Handler, excluded.Handler = from.counts.Count(injects.Handler), from.counts.Count(excluded.Handler)
				}
				judges, errAuthor := author.New(from.authors, from.neighbours, s.podDefault.Authorize)
				return []admission.Webhook{guarded(injects, &s.podDefault, from), excluded, judges}, errors.Join(err, errAuthor)
			},
			watch: func(env frontdoor.Environment) (watcher, error) {
				w, err := poddefault.Watch(env.Client, env.Logger)
				if err != nil {
					return watcher{}, err
				}
				w.WhenLoaded(env.Changed)
				authors, err := authorsOf(env.Client)
				if err != nil {
					return watcher{}, err
				}
				counts, err := poddefault.NewCounts(env.Metrics)
				if err != nil {
					return watcher{}, err
				}
				return watcher{
					sources: builtinSources{podDefaults: w, authors: authors, neighbours: w, counts: counts}, what: "poddefaults", help: "PodDefaults and ClusterPodDefaults known to this server.",
					ready: w.Ready, run: w.Run, count: w.Len, contact: w.LastContact,
				}, nil
			},
			rights: []rbacv1.PolicyRule{
				{APIGroups: []string{kubeflowv1alpha1.GroupName}, Resources: []string{kubeflowv1alpha1.PodDefaultResource}, Verbs: []string{"list", "watch"}},
				{APIGroups: []string{sallyportv1alpha1.GroupName}, Resources: []string{sallyportv1alpha1.ClusterPodDefaultResource}, Verbs: []string{"list", "watch"}},
				{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}}, // their labels
			},
			moreRights: authorRights,
		},
		{
			name:  "imagepull",
			short: "always pull images, from allowed registries, by a version",
			docs:  "docs/webhooks/imagepull.md",
			webhooks: func(s *builtinSettings, _ builtinSources) ([]admission.Webhook, error) {
				return imagepull.New(s.imagePull)
			},
		},
		{
			name:  "servicetype",
			short: "refuse load balancers, node ports, external names and IPs",
			docs:  "docs/webhooks/servicetype.md",
			webhooks: func(s *builtinSettings, _ builtinSources) ([]admission.Webhook, error) {
				return servicetype.New(s.serviceType)
			},
		},
		{
			name:  "projectlimit",
			short: "give each requester at most so many projects",
			docs:  "docs/webhooks/projectlimit.md",
			webhooks: func(s *builtinSettings, from builtinSources) ([]admission.Webhook, error) {
				return projectlimit.New(from.projects, s.projectLimit)
			},
			watch: func(env frontdoor.Environment) (watcher, error) {
				w, err := projectlimit.Watch(env.Client, env.Logger)
				if err != nil {
					return watcher{}, err
				}
				w.WhenLoaded(env.Changed)
				return watcher{
					sources: builtinSources{projects: w}, what: "projects", help: "Namespaces known to this server that count for a requester.",
					ready: w.Ready, run: w.Run, count: w.Len,
				}, nil
			},
			rights: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}}},
		},
		datasetBuiltin(),
	}
}

// enabledByDefault keeps installations as they are: what is new asks for consent.
var enabledByDefault = []string{"poddefault"}

// builtinSelection says which ready-made webhooks there are in a run.
type builtinSelection []string

func (s *builtinSelection) addFlag(cmd *cobra.Command) {
	*s = enabledByDefault
	cmd.Flags().StringSliceVar((*[]string)(s), "webhooks", *s,
		"`names` of the ready-made webhooks, see 'sallyport webhooks list': foo enables foo, -foo does not, * enables all that are not named")
	cli.CompleteChoices(cmd, "webhooks", allBuiltinNames())
}

func (s builtinSelection) validate() error {
	if err := hostedElsewhere(s); err != nil {
		return err
	}
	if err := cli.ValidateSelection("webhooks", s, allBuiltinNames()); err != nil {
		return err
	}
	if len(s.enabled()) == 0 {
		return fmt.Errorf("--webhooks %q enables none: name some of %s, or * for all", strings.Join(s, ","), cli.OneOf(allBuiltinNames()))
	}
	return nil
}

func (s builtinSelection) has(name string) bool { return cli.Selects(s, name) }

// enabled are the webhooks that are selected.
func (s builtinSelection) enabled() []builtin {
	var out []builtin
	for _, b := range builtins() {
		if s.has(b.name) {
			out = append(out, b)
		}
	}
	return out
}

// define defines the selected webhooks, the same in serve, review and manifests.
func (s builtinSelection) define(settings *builtinSettings, from builtinSources) ([]admission.Webhook, error) {
	var webhooks []admission.Webhook
	var errs []error
	for _, b := range s.enabled() {
		more, err := b.define(settings, from)
		if err != nil {
			errs = append(errs, fmt.Errorf("webhook %s: %w", b.name, err))
		}
		webhooks = append(webhooks, more...)
	}
	return webhooks, errors.Join(errs...)
}

// rights are those that the selected webhooks need, with these settings, to read from a
// cluster, each once.
func (s builtinSelection) rights(settings *builtinSettings) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, b := range s.enabled() {
		rules = distinct(rules, b.rights)
		if b.moreRights != nil {
			rules = distinct(rules, b.moreRights(settings))
		}
	}
	return rules
}

// rightsIn are those in single namespaces.
func (s builtinSelection) rightsIn(settings *builtinSettings) map[string][]rbacv1.PolicyRule {
	rules := map[string][]rbacv1.PolicyRule{}
	for _, b := range s.enabled() {
		if b.rightsIn != nil {
			for namespace, more := range b.rightsIn(settings) {
				rules[namespace] = distinct(rules[namespace], more)
			}
		}
	}
	return rules
}

func allBuiltinNames() []string {
	var names []string
	for _, b := range builtins() {
		names = append(names, b.name)
	}
	return names
}
