// SPDX-License-Identifier: Apache-2.0

// Package served reviews with the webhooks of a server.
package served

import (
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/cmd/internal/serve"
)

// Review configures a run with the webhooks of a configuration. They read from the run's
// files; in serve they read from the cluster. With a file they know the Secrets that the server would.
func Review(run *review.Run, c *serve.Config) {
	run.CountProjects, run.ReadDatasets, run.Dataset = c.Has("projectlimit"), c.Has("dataset"), *serve.Dataset(c)
	run.Exempts = serve.PodDefault(c).Exempts()
	if c.HasFile() { // else the server's configuration is not known
		run.DataConnections = &serve.PodDefault(c).DataConnections
	}
	run.Webhooks = func(from review.Sources) ([]admission.Webhook, error) {
		return c.Define(serve.From(
			serve.PodDefaultSources{PodDefaults: from.PodDefaults, Authors: serve.Anybody{}, Neighbours: from.PodDefaults},
			serve.ProjectLimitSources{Projects: from.Projects}, serve.DatasetSources{Datasets: from.Datasets},
		))
	}
}
