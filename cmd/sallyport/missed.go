// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/injection"
)

type missedOptions struct {
	clusterFlags
	all    bool
	output string
}

func newMissedCommand() *cobra.Command {
	o := missedOptions{}
	cmd := &cobra.Command{
		Use:   "missed [-n NAMESPACE | -A]",
		Short: "List the pods that passed injection though a PodDefault is for them, as in an outage",
		Long: "Missed lists the pods that exist, that a PodDefault or ClusterPodDefault selects, and that the webhook\n" +
			"has not decided on: they were created while it did not answer and its failure policy was Ignore, or\n" +
			"before it was registered. Create them again to have them injected.\n\n" +
			"Pods are left out that the webhook would not be asked about (selectors and match conditions of its\n" +
			"configuration), that exclude themselves, and that are older than the object that selects them, or than\n" +
			"its last change: how many these are stands on stderr.\n\n" +
			"Exit status: 0 if there are none, 2 if there are some, 1 anything else.",
		Example: "  sallyport missed --all-namespaces\n" +
			"  sallyport missed -n team-a -o json",
		Args:    noArguments("name a namespace by -n"),
		PreRunE: func(*cobra.Command, []string) error { return o.validate() },
		RunE:    o.run,
	}
	o.addNamespacedFlags(cmd)
	addFlagGroup(cmd, "Cluster", func() {
		cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "look at all namespaces")
	})
	addOutputFlag(cmd, &o.output, textOrJSON)
	return cmd
}

func (o *missedOptions) validate() error {
	errs := []error{cli.Choice("output", o.output, textOrJSON)}
	if o.all && o.namespace != "" {
		errs = append(errs, errors.New("--all-namespaces and --namespace: give one of them"))
	}
	return errors.Join(errs...)
}

func (o *missedOptions) run(cmd *cobra.Command, _ []string) error {
	c, err := o.open()
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
