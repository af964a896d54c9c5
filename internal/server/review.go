// SPDX-License-Identifier: Apache-2.0

package server

import (
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/replay/review"
)

// Review configures a run with the webhooks of the configuration. They read from the run's
// files; in serve they read from the cluster.
func (c *Config) Review(run *review.Run) {
	run.CountProjects, run.ReadDatasets, run.Dataset = c.Has("projectlimit"), c.Has("dataset"), c.Settings.Dataset
	run.Exempts = c.Settings.PodDefault.Exempts()
	run.Webhooks = func(from review.Sources) ([]admission.Webhook, error) {
		return c.Define(Sources{
			PodDefaults: from.PodDefaults, Authors: Anybody{}, Neighbours: from.PodDefaults, Projects: from.Projects, Datasets: from.Datasets,
		})
	}
}
