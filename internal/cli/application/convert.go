// SPDX-License-Identifier: Apache-2.0

package application

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/clusterflags"
	"github.com/sallyport-io/sallyport/internal/install/roundtrip"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// Convert returns the command convert of an application with these converters.
func Convert(application string, flags clusterflags.Flags, converters []conversion.Converter) *cobra.Command {
	cmd := convert(&roundtrip.Checker{Own: converters}, flags, application, "with the converters of this program")
	for _, converter := range converters {
		cmd.ValidArgs = append(cmd.ValidArgs, converter.CRD())
	}
	return cmd
}

// ConvertByWebhooks returns the command convert of a program without converters: it calls the conversion
// webhooks of the definitions. Its error is [cli.ExitFound] if something is lost.
func ConvertByWebhooks(program string, flags clusterflags.Flags) *cobra.Command {
	cmd := convert(&roundtrip.Checker{}, flags, program, "by the conversion webhooks of the cluster's definitions, or of definitions in the files")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		var loss *roundtrip.LossError
		if errors.As(err, &loss) {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s: %v\n", program, err)
			return cli.ExitFound
		}
		return err
	}
	return cmd
}

func convert(c *roundtrip.Checker, cluster clusterflags.Flags, program, by string) *cobra.Command {
	c.Config = cluster.ClientConfig
	cmd := &cobra.Command{
		Use:   "convert [DEFINITION...] [-f FILE]",
		Short: "Check that existing objects survive conversion to each version and back",
		Long: "Convert objects to each version of their kind and back, " + by + ". Print which\n" +
			"paths are lost, changed or added, and which objects cannot be converted; if there are any, the command\n" +
			"fails. Nothing is written, and no values are printed.\n\n" +
			"Without -f, all objects of the definitions are read from the cluster, in the storage version.",
		Example: "  # all objects of a cluster, before the storage version or the converters change\n" +
			"  " + program + " convert\n\n" +
			"  # objects in a backup\n" +
			"  " + program + " convert -f backup/",
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.Run(cmd.Context(), args, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.SetUsageFunc(cli.PrintUsage)
	flags := cmd.Flags()
	cli.AddFlagGroup(cmd, "Input", func() {
		flags.StringArrayVarP(&c.Files, "filename", "f", nil, "`file` or folder with objects, YAML or JSON, or - for stdin; may be repeated")
		cli.CompleteFiles(cmd, "filename", manifest.Extensions...)
	})
	cluster.AddFlags(cmd)
	return cmd
}
