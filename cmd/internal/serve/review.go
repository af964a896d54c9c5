// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
)

// Review configures a run with the webhooks of the configuration. They read from the run's
// files; in serve they read from the cluster. With a file they know the Secrets that the server would.
func (c *Config) Review(run *review.Run) {
	run.CountProjects, run.ReadDatasets, run.Dataset = c.Has("projectlimit"), c.Has("dataset"), c.Settings.Dataset
	run.Exempts = c.Settings.PodDefault.Exempts()
	if c.data != nil { // else the server's configuration is not known
		run.DataConnections = &c.Settings.PodDefault.DataConnections
	}
	run.Webhooks = func(from review.Sources) ([]admission.Webhook, error) {
		return c.Define(Sources{
			PodDefaults: from.PodDefaults, Authors: Anybody{}, Neighbours: from.PodDefaults, Projects: from.Projects, Datasets: from.Datasets,
		})
	}
}
