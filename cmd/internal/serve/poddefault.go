// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
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
	"github.com/sallyport-io/sallyport/internal/registration"
	"github.com/sallyport-io/sallyport/internal/registration/rbac"
)

const podDefaultName = "poddefault"

// PodDefaultSettings are the settings of injection and of the authorization of authors.
type PodDefaultSettings struct {
	poddefault.Settings `json:",inline"`
	// authorizeAuthors selects what happens to a PodDefault whose author may not create pods.
	Authorize author.Mode `json:"authorizeAuthors"`
	// guard selects what happens to pods during an outage.
	Guard Guard `json:"guard"`
}

func defaultPodDefaultSettings() PodDefaultSettings {
	return PodDefaultSettings{Settings: poddefault.DefaultSettings(), Authorize: author.Enforce}
}

// Validate reports every problem, by the names that the fields have in a file.
func (s PodDefaultSettings) Validate() error {
	return errors.Join(s.Settings.Validate(), s.Authorize.Validate(), s.Guard.Validate())
}

// PodDefault returns the settings of the webhook poddefault.
func PodDefault(c *Config) *PodDefaultSettings {
	return c.Settings[podDefaultName].(*PodDefaultSettings)
}

// PodDefaultSources are what poddefault reads from.
type PodDefaultSources struct {
	PodDefaults match.Source
	Authors     author.Authorizer
	Classes     author.MissingClass // nil where there is no cluster to ask
	Neighbours  author.Neighbours   // nil without neighbours to notify

	counts  *counts.Counts // nil if metrics are not exposed
	indexes *indexes       // nil: every index exists
	// findings records what reports tell; nil without reports.
	findings *reports.Recorder
}

func (PodDefaultSources) of() string { return podDefaultName }

func podDefaultBuiltin() Builtin {
	return Builtin{
		Name:      podDefaultName,
		Short:     "inject the PodDefaults of the namespace into pods",
		Docs:      "docs/poddefault.md",
		byDefault: true,
		settings: func() settings {
			s := defaultPodDefaultSettings()
			return &s
		},
		none: func() Sourced {
			return PodDefaultSources{PodDefaults: source.NewIndex(), Authors: Anybody{}}
		},
		webhooks: func(c *Config, sources Sources) ([]admission.Webhook, error) {
			s, from := PodDefault(c), sourcesOf[PodDefaultSources](sources)
			beside := besidePodDefaults(s, from)
			injects, err := poddefault.New(from.PodDefaults, s.Settings, beside...)
			if err != nil {
				return nil, err
			}
			excluded, err := poddefault.NewExcluded(from.PodDefaults, s.Settings, beside...)
			judges, errAuthor := author.New(from.Authors, from.Neighbours, s.Authorize)
			if from.Classes != nil {
				judges.Handler = author.WarnOfClasses(judges.Handler, from.Classes)
			}
			all := []admission.Webhook{guarded(injects, s, from), excluded, judges}
			if err := errors.Join(err, errAuthor); err != nil || !s.Exempts() {
				return all, err
			}
			exempts, err := author.NewExempt(from.Authors, s.MaxExemption.Duration)
			return append(all, exempts), err
		},
		previews: previewPodDefaults,
		watch: func(b *liveBuiltin, env frontdoor.Environment) (watcher, error) {
			c, running := b.config.start, b.running.(*podDefaultRunning)
			s := PodDefault(c)
			w, err := source.Watch(b.config.cluster, source.WatchOptions{
				DataConnections: s.DataConnections, Exempts: s.Exempts(), Recorded: selects(c.Controllers, status.Name),
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
				sources: PodDefaultSources{
					PodDefaults: w, Authors: authors, Classes: classes, Neighbours: w, counts: counted,
					indexes: &running.indexes, findings: running.findings(c),
				},
				what: "poddefaults", help: "PodDefaults and ClusterPodDefaults known to this server.",
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
		moreRights: func(c *Config) []rbacv1.PolicyRule {
			return slices.Concat(authorRights(PodDefault(c)), classRights, connectionRights(PodDefault(c)))
		},
		registers: func(c *Config) []rbacv1.PolicyRule {
			if c.Registration.Mode != registration.ModeAPI {
				return nil
			}
			return rbac.BackstopPolicyRules(c.Registration.Name)
		},
		widen:       func(c *Config) { PodDefault(c).MaxExemption.Duration = 1 },
		fixed:       []string{author.Name, author.ExemptName}, // they do not cover pods, so requests they no longer see would be admitted
		keepsNames:  "doctor, drift, missed and the policy that stands in for the webhook find it by its name",
		running:     func() any { return &podDefaultRunning{} },
		controllers: podDefaultControllers(),
		adjust:      adjustPodDefault,
		validate:    validateGuard,
		afterRestart: []restarted{
			{name: "dataConnections of poddefault", same: func(a, b *Config) bool { return PodDefault(a).DataConnections == PodDefault(b).DataConnections }},
			{
				name: "maxExemption of poddefault", same: func(a, b *Config) bool { return PodDefault(a).MaxExemption == PodDefault(b).MaxExemption },
				// Until then nothing guards Exemptions.
				keep: func(next, start *Config) { PodDefault(next).MaxExemption = PodDefault(start).MaxExemption },
			},
		},
	}
}

// besidePodDefaults returns the features beside the core of the webhooks for PodDefaults.
func besidePodDefaults(s *PodDefaultSettings, from PodDefaultSources) (beside []poddefault.Feature) {
	if s.Usage == poddefault.UsageCheck {
		beside = append(beside, poddefault.WithUsage(usage.New(from.Authors)))
	}
	if from.counts != nil {
		beside = append(beside, poddefault.WithDecisions(from.counts.Count))
	}
	if watcher, ok := from.PodDefaults.(*source.Watcher); ok && s.Guard != GuardFail {
		beside = append(beside, poddefault.WithGone(watcher.Gone))
	}
	if from.findings != nil {
		beside = append(beside, poddefault.WithFindings(from.findings.Record))
	}
	return beside
}

// previewPodDefaults asks the webhooks for pods, with what is watched, without Secrets, and unobserved.
func previewPodDefaults(c *Config, all Sources) (preview, error) {
	from, s := sourcesOf[PodDefaultSources](all), *PodDefault(c)
	s.Freshness = poddefault.Cached
	source := poddefault.WithoutSecrets(from.PodDefaults)
	beside := besidePodDefaults(&s, PodDefaultSources{Authors: from.Authors})
	injects, err := poddefault.New(source, s.Settings, beside...)
	excluded, errExcluded := poddefault.NewExcluded(source, s.Settings, beside...)
	called, errTerms := called(c.entry(podDefaultName), source.NamespaceLabels)
	return func(ctx context.Context, pod *admissionv1.AdmissionRequest) (problems []string, err error) {
		if !called(pod) {
			return nil, nil
		}
		refused, unapplied, err := poddefault.Preview(ctx, []admission.Webhook{injects, excluded}, pod)
		for _, text := range refused {
			problems = append(problems, "would be refused: "+text)
		}
		for _, text := range unapplied {
			problems = append(problems, "would not get "+text)
		}
		return problems, err
	}, errors.Join(err, errExcluded, errTerms)
}
