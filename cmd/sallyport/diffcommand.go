// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/sallyport-io/sallyport/internal/cli"
)

// reviewer is who asks where nobody is named. PodDefaults do not look at that.
var reviewer = authenticationv1.UserInfo{Username: "sallyport-review"}

func newDiffCommand() *cobra.Command {
	o, output, color := defaultsOptions{settings: defaultBuiltinSettings()}, outputDiff, colorChoices[0]
	cmd := &cobra.Command{
		Use:   "diff TYPE/NAME | -f FILE",
		Short: "Show what the PodDefaults of a cluster would change in a pod",
		Long: "Diff sends pods, or the templates of what makes pods, through injection with the PodDefaults of the\n" +
			"cluster, and shows what comes out, as 'sallyport review' does with files. A pod that runs is sent again\n" +
			"as it is: what is shown is what it lacks. Nothing is written. The API server's own defaults and plugins\n" +
			"take no part.\n\n" +
			"Exit status: 0 allowed, 3 denied (the message is on stderr), 1 anything else.",
		Example: "  sallyport diff -f pod.yaml\n\n" +
			"  # what a Deployment's next pod would get\n" +
			"  sallyport diff deployment/web -n team-a",
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: o.completeWorkloads,
		PreRunE: func(cmd *cobra.Command, args []string) error {
			return errors.Join(o.prepare(cmd, args), cli.Choice("output", output, reviewOutputs), cli.Choice("color", color, colorChoices))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.diff(cmd, args, &reviewPrinter{
				out: cmd.OutOrStdout(), notes: cmd.ErrOrStderr(), output: output, color: useColor(color, cmd.OutOrStdout()),
			})
		},
	}
	o.addFlags(cmd, "pods, or what makes pods")
	addFlagGroup(cmd, "Output", func() {
		cmd.Flags().StringVarP(&output, "output", "o", output,
			"`format` of the output: what changed and why (diff), the resulting pod (yaml, json), the JSON Patch (patch) or the AdmissionReview (review)")
		cmd.Flags().StringVar(&color, "color", color, "`when` to colour the diff: "+cli.OneOf(colorChoices))
		cli.CompleteChoices(cmd, "output", reviewOutputs)
		cli.CompleteChoices(cmd, "color", colorChoices)
	})
	return cmd
}

func (o *defaultsOptions) diff(cmd *cobra.Command, args []string, printer *reviewPrinter) error {
	c, err := o.open()
	if err != nil {
		return err
	}
	objects, err := o.objects(cmd, c, args)
	if err != nil {
		return err
	}
	known := map[string]*clusterDefaults{}
	denied := false
	for _, given := range objects {
		namespace := given.Namespace
		if namespace == "" {
			namespace = c.namespace
		}
		if known[namespace] == nil {
			if known[namespace], err = c.defaults(cmd.Context(), namespace, cmd.ErrOrStderr()); err != nil {
				return err
			}
		}
		pods, err := c.podsOf(cmd.Context(), given)
		if err != nil {
			return err
		}
		for _, pod := range pods {
			if err := o.checker.checkMade(cmd.Context(), pod); err != nil {
				return err
			}
			out, err := o.try(cmd.Context(), pod, known[namespace])
			if err != nil {
				return err
			}
			if err := printer.print(out); err != nil {
				return err
			}
			denied = denied || out.denied != nil
		}
	}
	if denied {
		return exitStatus(exitDenied)
	}
	return nil
}
