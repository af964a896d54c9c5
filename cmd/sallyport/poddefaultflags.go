// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/webhooks/poddefault"
)

// addPodDefaultFlags adds the settings of the PodDefault webhook.
func addPodDefaultFlags(cmd *cobra.Command, settings *poddefault.Settings) {
	flags := cmd.Flags()
	flags.StringSliceVar(&settings.CommandExcluded, "excluded-containers", settings.CommandExcluded,
		"`names` of containers whose command and args PodDefaults leave alone")
	flags.StringSliceVar(&settings.MeshContainers, "mesh-containers", settings.MeshContainers,
		"`names` of containers that get from PodDefaults, but for command and args, only what asks for them by name; empty for none")
	flags.StringVar(&settings.Freshness, "poddefault-freshness", settings.Freshness,
		"`how` up to date PodDefaults are for a pod: "+poddefault.Cached+" takes what a watch knows, milliseconds behind, "+
			poddefault.Consistent+" asks the API server for each pod")
	cli.CompleteChoices(cmd, "poddefault-freshness", poddefault.Freshnesses())
}
