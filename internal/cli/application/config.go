// SPDX-License-Identifier: Apache-2.0

package application

import (
	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/setting"
	"github.com/sallyport-io/sallyport/internal/install"
)

// Config returns the command config of an application, whose server has the flags that addFlags adds.
func Config(a install.Application, addFlags func(*cobra.Command)) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check the flags of the server, and print all settings",
		Long: "Read flags as '" + a.Name + "' does, and report every problem, or print all settings as YAML: those of the\n" +
			"flags, and the defaults of the others. Nothing is reached over the network.",
		Example:      "  " + a.Name + " config --leader-elect-lease-duration 30s",
		Args:         cli.NoArguments("use flags"),
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.Validate(); err != nil {
				return setting.ByFlags(cmd.Flags(), err)
			}
			return cli.PrintFlags(cmd.OutOrStdout(), cmd.Flags())
		},
	}
	cmd.Flags().SortFlags = false
	addFlags(cmd)
	return cmd
}
