// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/kinds"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/live"
)

// DatasetSources are what dataset reads from.
type DatasetSources struct {
	Datasets dataset.Source

	observe dataset.Observer // counts the outcomes for pods; nil to count nothing
}

func (DatasetSources) of() string { return "dataset" }

// Dataset returns the settings of the webhook dataset.
func Dataset(c *Config) *dataset.Settings { return c.Settings["dataset"].(*dataset.Settings) }

// datasetBuiltin returns the webhook that replaces Fluid's own.
func datasetBuiltin() Builtin {
	return Builtin{
		Name:  "dataset",
		Short: "let pods land where the data of their Fluid datasets is cached",
		Docs:  "docs/webhooks/dataset.md",
		settings: func() settings {
			s := dataset.DefaultSettings()
			s.FromEnvironment(os.Getenv)
			return &s
		},
		none: func() Sourced { return DatasetSources{Datasets: dataset.NewIndex()} },
		webhooks: func(c *Config, all Sources) ([]admission.Webhook, error) {
			from := sourcesOf[DatasetSources](all)
			webhooks, err := dataset.New(from.Datasets, *Dataset(c), from.observe)
			if watcher, ok := from.Datasets.(*live.Watcher); ok && err == nil {
				watcher.Want(*Dataset(c))
			}
			return webhooks, err
		},
		widen: func(c *Config) { Dataset(c).NamespaceLabel = true },
		watch: func(_ *liveBuiltin, env frontdoor.Environment) (watcher, error) {
			observe, err := observePlugins(env.Metrics)
			if err != nil {
				return watcher{}, err
			}
			w, err := live.Watch(env.Client, env.Logger)
			if err != nil {
				return watcher{}, err
			}
			w.WhenLoaded(env.Changed)
			return watcher{
				sources: DatasetSources{w, observe}, what: "datasets", help: "Fluid Datasets known to this server.",
				ready: w.Ready, run: w.Run, count: w.Len,
			}, nil
		},
		rights: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{kinds.Group}, Resources: kinds.Resources(), Verbs: []string{"get", "list", "watch"}},
		},
		moreRights: func(c *Config) []rbacv1.PolicyRule {
			rules, _ := Dataset(c).PolicyRules()
			return rules
		},
		rightsIn: func(c *Config) map[string][]rbacv1.PolicyRule {
			_, rules := Dataset(c).PolicyRules()
			return rules
		},
		needs: func(c *Config, from Sources) error {
			if watcher, ok := sourcesOf[DatasetSources](from).Datasets.(*live.Watcher); ok {
				return watcher.ReadyFor(*Dataset(c))
			}
			return nil
		},
	}
}

// observePlugins counts the outcomes of plugins.
func observePlugins(metrics prometheus.Registerer) (dataset.Observer, error) {
	counters := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sallyport_dataset_plugins_total", Help: "Pods handled by a plugin of the dataset webhook, by outcome.",
	}, []string{"plugin", "outcome"})
	if err := metrics.Register(counters); err != nil {
		return nil, fmt.Errorf("metrics of plugins: %w", err)
	}
	all := map[[2]string]prometheus.Counter{}
	for _, plugin := range dataset.PluginNames() {
		for _, outcome := range dataset.Outcomes() {
			all[[2]string{plugin, outcome}] = counters.WithLabelValues(plugin, outcome)
		}
	}
	return func(plugin, outcome string) { all[[2]string{plugin, outcome}].Inc() }, nil
}
