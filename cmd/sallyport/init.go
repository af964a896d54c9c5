// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/cmd/internal/install/scaffold"
	"github.com/sallyport-io/sallyport/internal/cli"
)

func newInitCommand() *cobra.Command {
	o := scaffold.Init{Project: scaffold.Project{Sallyport: buildVersion()}}
	cmd := o.Command()
	cli.AddFlagGroup(cmd, "API", func() { o.AddAPIFlags(cmd) })
	cli.AddFlagGroup(cmd, "Project", func() { o.AddProjectFlags(cmd) })
	return cmd
}
