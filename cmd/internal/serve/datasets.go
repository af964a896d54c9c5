// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset"
	"github.com/sallyport-io/sallyport/internal/store"
)

// datasetBuiltin returns the webhook that replaces Fluid's own.
func datasetBuiltin() Builtin {
	return Builtin{
		Name:  "dataset",
		Short: "let pods land where the data of their Fluid datasets is cached",
		Docs:  "docs/webhooks/dataset.md",
		webhooks: func(s *Settings, from Sources) ([]admission.Webhook, error) {
			webhooks, err := dataset.New(from.Datasets, s.Dataset, from.observePlugin)
			if watcher, ok := from.Datasets.(*dataset.Watcher); ok && err == nil {
				watcher.Want(s.Dataset)
			}
			return webhooks, err
		},
		widen: func(s *Settings) { s.Dataset.NamespaceLabel = true },
		watch: func(env frontdoor.Environment, _ *store.Factory, _ *Config) (watcher, error) {
			observe, err := observePlugins(env.Metrics)
			if err != nil {
				return watcher{}, err
			}
			w, err := dataset.Watch(env.Client, env.Logger)
			if err != nil {
				return watcher{}, err
			}
			w.WhenLoaded(env.Changed)
			return watcher{
				sources: Sources{Datasets: w, observePlugin: observe}, what: "datasets", help: "Fluid Datasets known to this server.",
				ready: w.Ready, run: w.Run, count: w.Len,
			}, nil
		},
		rights: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{dataset.Group}, Resources: dataset.Resources(), Verbs: []string{"get", "list", "watch"}},
		},
		moreRights: func(s *Settings) []rbacv1.PolicyRule {
			rules, _ := s.Dataset.PolicyRules()
			return rules
		},
		rightsIn: func(s *Settings) map[string][]rbacv1.PolicyRule {
			_, rules := s.Dataset.PolicyRules()
			return rules
		},
		needs: func(s *Settings, from Sources) error {
			if watcher, ok := from.Datasets.(*dataset.Watcher); ok {
				return watcher.ReadyFor(s.Dataset)
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
