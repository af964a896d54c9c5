// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/pflag"

	"github.com/sallyport-io/sallyport/webhooks/poddefault"
)

// addPodDefaultFlags adds the settings of the PodDefault webhook.
func addPodDefaultFlags(flags *pflag.FlagSet, settings *poddefault.Settings) {
	flags.StringSliceVar(&settings.CommandExcluded, "excluded-containers", settings.CommandExcluded,
		"`names` of containers whose command and args PodDefaults leave alone")
	flags.StringSliceVar(&settings.MeshContainers, "mesh-containers", settings.MeshContainers,
		"`names` of containers that get no env, envFrom and volumeMounts from PodDefaults; empty for none")
}
