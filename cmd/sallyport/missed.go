// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cluster"
	"github.com/sallyport-io/sallyport/internal/injection"
)

type missedOptions struct {
	cluster.Flags
	all    bool
	output string
}

func newMissedCommand() *cobra.Command {
	o := missedOptions{Flags: clusterFlags()}
	cmd := &cobra.Command{
		Use:   "missed [-n NAMESPACE | -A]",
		Short: "List pods that were created without the PodDefaults that match them, as in an outage",
		Long: "List existing pods that a PodDefault or ClusterPodDefault selects but the webhook has not processed:\n" +
			"they were created while it was down and its failure policy was Ignore, or before it was registered.\n" +
			"Recreate them to have them injected.\n\n" +
			"Pods for which the webhook would not be called (selectors and match conditions of its configuration),\n" +
			"pods that exclude themselves, and pods older than the object that selects them or its last change are\n" +
			"omitted and only counted on stderr.\n\n" +
			"Exit status: 0 if there are none, 2 if there are some, 1 anything else.",
		Example: "  sallyport missed --all-namespaces\n" +
			"  sallyport missed -n team-a -o json",
		Args:    cli.NoArguments("use -n for a namespace"),
		PreRunE: func(*cobra.Command, []string) error { return o.validate() },
		RunE:    o.run,
	}
	o.AddNamespacedFlags(cmd)
	cli.AddFlagGroup(cmd, "Cluster", func() {
		cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "search all namespaces")
	})
	cli.AddOutputFlag(cmd, &o.output, cli.TextOrJSON)
	return cmd
}

func (o *missedOptions) validate() error {
	errs := []error{cli.Choice("output", o.output, cli.TextOrJSON)}
	if o.all && o.Namespace != "" {
		errs = append(errs, errors.New("--all-namespaces and --namespace cannot be used together"))
	}
	return errors.Join(errs...)
}

func (o *missedOptions) run(cmd *cobra.Command, _ []string) error {
	c, err := o.Open()
	if err != nil {
		return err
	}
	namespace := c.Namespace
	if o.all {
		namespace = ""
	}
	missed, err := injection.FindMissed(cmd.Context(), c, namespace, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if o.output == "json" {
		err = cli.PrintJSON(cmd.OutOrStdout(), missed)
	} else {
		err = injection.PrintMissed(cmd.OutOrStdout(), missed)
	}
	if err == nil && len(missed) > 0 {
		err = exitStatus(exitFound)
	}
	return err
}
