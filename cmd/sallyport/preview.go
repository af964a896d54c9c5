// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/injection"
)

type previewOptions struct {
	defaultsOptions
	remove, names bool
	color         string
}

func newPreviewCommand() *cobra.Command {
	o := previewOptions{color: colorChoices[0]}
	cmd := &cobra.Command{
		Use:   "preview -f FILE | poddefault/NAME | clusterpoddefault/NAME",
		Short: "Show which workloads' pods a PodDefault would change, and how",
		Long: "Preview compares the pods that the workloads of a cluster make now with those that they would make if\n" +
			"the PodDefaults or ClusterPodDefaults of the files were there, or were changed to that. For one that is\n" +
			"named it shows what it does: the comparison is with a cluster without it. Workloads are what makes\n" +
			"pods: Deployments, StatefulSets, DaemonSets, ReplicaSets, Jobs and CronJobs by their templates, and\n" +
			"pods that nobody known makes. Pods that run do not change; nothing is written. What is in a file is checked\n" +
			"first: its fields, its schema, and what the webhook for authors would refuse.\n\n" +
			"Exit status: 0 if all pods would be admitted, 3 if some would be denied that are not now, or the object\n" +
			"itself would be, 1 anything else.",
		Example: "  # before it is applied\n" +
			"  sallyport preview -f poddefault.yaml\n\n" +
			"  # what one does, and what its deletion would undo\n" +
			"  sallyport preview poddefault/http-proxy -n team-a --remove",
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: o.completeDefaults,
		PreRunE: func(cmd *cobra.Command, args []string) error {
			err := errors.Join(o.prepare(cmd, args), cli.Choice("color", o.color, colorChoices))
			if o.remove && len(o.files) > 0 {
				err = errors.Join(err, errors.New("--remove is for an object of the cluster: name it"))
			}
			return err
		},
		RunE: o.preview,
	}
	o.addFlags(cmd, "PodDefaults and ClusterPodDefaults")
	addFlagGroup(cmd, "Output", func() {
		cmd.Flags().BoolVar(&o.remove, "remove", false, "show what would change if the object that is named were deleted")
		cmd.Flags().BoolVar(&o.names, "names", false, "print which workloads would change, and not how")
		cmd.Flags().StringVar(&o.color, "color", o.color, "`when` to colour the diff: "+cli.OneOf(colorChoices))
		cli.CompleteChoices(cmd, "color", colorChoices)
	})
	return cmd
}

func (o *previewOptions) completeDefaults(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	word, _, named := strings.Cut(typed, "/")
	var offered []string
	for _, kind := range injection.Kinds() {
		if !named && strings.HasPrefix(kind.Words[0], typed) {
			offered = append(offered, kind.Words[0]+"/")
		}
		if named && slices.Contains(kind.Words, word) {
			c, err := o.open()
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			for _, name := range o.complete(cmd, kind.Path(c.Namespace)) {
				offered = append(offered, word+"/"+name)
			}
		}
	}
	if !named {
		return offered, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}

func (o *previewOptions) preview(cmd *cobra.Command, args []string) error {
	trial, err := o.trial(cmd)
	if err != nil {
		return err
	}
	p := injection.Preview{
		Trial: trial, Out: cmd.OutOrStdout(), Color: useColor(o.color, cmd.OutOrStdout()), Names: o.names, Everywhere: o.namespace == "",
	}
	if len(args) > 0 {
		return deniedStatus(p.Named(cmd.Context(), args, o.remove))
	}
	objects, err := injection.ReadFiles(cmd.Context(), o.files, cmd.InOrStdin(), o.checker, "preview")
	if err != nil {
		return err
	}
	return deniedStatus(p.Files(cmd.Context(), objects))
}
