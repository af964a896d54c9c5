// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/internal/cli"
)

func newDiffCommand() *cobra.Command {
	o, output, color := defaultsOptions{Flags: clusterFlags()}, review.OutputDiff, ""
	cmd := &cobra.Command{
		Use:   "diff TYPE/NAME | -f FILE",
		Short: "Show what the PodDefaults of a cluster would change in a pod",
		Long: "Run injection with the PodDefaults of the cluster on pods or on the pod templates of workloads, and show\n" +
			"the result, as 'sallyport review' does with files. For a running pod, the result shows what is missing.\n" +
			"Below it stands why PodDefaults would not be applied to the pod, or no longer would; with another\n" +
			"output than diff, on stderr.\n" +
			"The API server is asked about each resulting pod by a dry run, with your rights: quotas, LimitRanges,\n" +
			"classes, ServiceAccounts, policies and its validation may refuse it. A refusal names the fields and what\n" +
			"has set them. Nothing is written.",
		Example: "  sallyport diff -f pod.yaml\n\n" +
			"  # what the next pod of a Deployment would get\n" +
			"  sallyport diff deployment/web -n team-a",
		Args:              cli.Arguments(0, 2, "TYPE/NAME, TYPE NAME, or -f FILE"),
		ValidArgsFunction: o.CompleteWorkloads,
		PreRunE: func(cmd *cobra.Command, args []string) error {
			return errors.Join(o.prepare(cmd, args), cli.Choice("output", output, review.OutputsOfObjects), cli.Choice("color", color, cli.ColorChoices))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.diff(cmd, args, &review.Printer{
				Out: cmd.OutOrStdout(), Notes: cmd.ErrOrStderr(), Output: output, Color: cli.UseColor(color, cmd.OutOrStdout()),
			})
		},
	}
	o.addFlags(cmd, "pods or workloads")
	o.addServerFlag(cmd)
	cli.AddFlagGroup(cmd, "Output", func() {
		cmd.Flags().StringVarP(&output, "output", "o", output,
			"`format` of the output: what changed and why (diff), the resulting pod (yaml, json), the JSON Patch (patch), or the AdmissionReview (review)")
		cli.AddColorFlag(cmd, &color, "the diff")
		cli.CompleteChoices(cmd, "output", review.OutputsOfObjects)
	})
	return cmd
}

func (o *defaultsOptions) diff(cmd *cobra.Command, args []string, printer *review.Printer) error {
	simulator, err := o.asking(cmd)
	if err != nil {
		return err
	}
	objects, err := o.objects(cmd, simulator.Cluster, args)
	if err != nil {
		return err
	}
	return deniedStatus(simulator.Diff(cmd.Context(), objects, printer))
}
