// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/live/injection"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
)

// revisedOptions are the options of commands about the revisions of one object.
type revisedOptions struct {
	cluster.Flags
	dryRun bool
}

// command returns a command for one object.
func (o *revisedOptions) command(cmd *cobra.Command, writes bool, run func(cmd *cobra.Command, r *injection.Revised) error) *cobra.Command {
	cmd.Args = cli.Arguments(1, 1, "one argument, poddefault/NAME or clusterpoddefault/NAME")
	cmd.ValidArgsFunction = o.complete
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r, err := o.read(cmd, args[0])
		if err != nil {
			return err
		}
		return run(cmd, r)
	}
	o.AddNamespacedFlags(cmd)
	if writes {
		cli.AddFlagGroup(cmd, "Output", func() {
			cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "validate the change on the API server without storing it")
		})
	}
	return cmd
}

// read reads the object with that TYPE/NAME.
func (o *revisedOptions) read(cmd *cobra.Command, named string) (*injection.Revised, error) {
	name, ofCluster, err := injection.ParseRevised(named)
	if err != nil {
		return nil, err
	}
	c, err := o.Open()
	if err != nil {
		return nil, err
	}
	r, err := injection.ReadRevised(cmd.Context(), c, name, ofCluster)
	if err == nil {
		r.DryRun = o.dryRun
	}
	return r, err
}

func (o *revisedOptions) complete(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	kind, _, named := strings.Cut(typed, "/")
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if !named {
		return []string{"poddefault/", "clusterpoddefault/"}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	_, ofCluster, err := injection.ParseRevised(kind + "/x")
	c, openErr := o.Open()
	if err != nil || openErr != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := o.Complete(cmd, injection.CollectionOf(ofCluster, c.Namespace))
	for i := range names {
		names[i] = kind + "/" + names[i]
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// said prints what was done.
func (o *revisedOptions) said(cmd *cobra.Command, format string, args ...any) error {
	suffix := "\n"
	if o.dryRun {
		suffix = " (dry run)\n"
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), format+suffix, args...)
	return err
}

func newHistoryCommand() *cobra.Command {
	o, revision := revisedOptions{Flags: clusterFlags()}, ""
	cmd := o.command(&cobra.Command{
		Use:   "history TYPE/NAME",
		Short: "List the revisions of a PodDefault, or show the spec of one",
		Long: "List the recorded revisions of a PodDefault or ClusterPodDefault, which of them is current or stable, and\n" +
			"the state of a rollout. TYPE is poddefault or clusterpoddefault.\n\n" +
			"Exit status: 0 success, 1 error.",
		Example: "  sallyport history poddefault/proxy -n team-a\n\n" +
			"  # what revision 3 adds to pods\n" +
			"  sallyport history poddefault/proxy -n team-a --revision 3",
	}, false, func(cmd *cobra.Command, r *injection.Revised) error {
		if revision == "" {
			return r.PrintHistory(cmd.OutOrStdout(), cmd.ErrOrStderr())
		}
		one, err := r.Revision(revision)
		if err != nil {
			return err
		}
		return injection.PrintRevision(cmd.OutOrStdout(), one)
	})
	cli.AddFlagGroup(cmd, "Output", func() {
		cmd.Flags().StringVar(&revision, "revision", "", "`number` or name of the revision to show, or the first digits of its name")
	})
	return cmd
}

func newRollbackCommand() *cobra.Command {
	o, to, now := revisedOptions{Flags: clusterFlags()}, "", false
	cmd := o.command(&cobra.Command{
		Use:   "rollback TYPE/NAME",
		Short: "Give a PodDefault the spec of an earlier revision",
		Long: "Give a PodDefault or ClusterPodDefault the spec of an earlier revision. Its description, rollout and limit\n" +
			"of revisions stay. If it has a rollout, the steps apply to this change too, unless you give --now. A rollback\n" +
			"to the stable revision ends a rollout. The output says which revision new pods get.\n\n" +
			"Exit status: 0 success, 1 error.",
		Example: "  # undo the last change, for all new pods at once\n" +
			"  sallyport rollback poddefault/proxy -n team-a --now\n\n" +
			"  sallyport rollback clusterpoddefault/proxy --to-revision 3 --dry-run",
	}, true, func(cmd *cobra.Command, r *injection.Revised) error {
		one, err := r.Revision(to)
		if err != nil {
			return err
		}
		changed, err := r.Rollback(cmd.Context(), one, now)
		if err != nil {
			return err
		}
		if !changed {
			return o.said(cmd, "%s is at revision %d already", r.Title(), one.Number)
		}
		return o.said(cmd, "%s rolled back to revision %d; %s", r.Title(), one.Number, r.After(one, now))
	})
	cli.AddFlagGroup(cmd, "Input", func() {
		cmd.Flags().StringVar(&to, "to-revision", "", "`number` or name of the revision, or the first digits of its name; defaults to the latest one before the current")
		cmd.Flags().BoolVar(&now, "now", false, "complete the rollout of that revision instead of beginning with its first step")
	})
	return cmd
}

func newPromoteCommand() *cobra.Command {
	o, full, force := revisedOptions{Flags: clusterFlags()}, false, false
	cmd := o.command(&cobra.Command{
		Use:   "promote TYPE/NAME",
		Short: "Promote a rollout to its next step",
		Long: "Promote the rollout of a PodDefault or ClusterPodDefault to its next step without waiting. It is refused while\n" +
			"the condition RolloutHealthy is False, unless you override it with --force.\n\n" +
			"Exit status: 0 success, 1 error.",
		Example: "  sallyport promote poddefault/proxy -n team-a\n\n" +
			"  # skip the other steps\n" +
			"  sallyport promote poddefault/proxy -n team-a --full\n\n" +
			"  # although pods with the new revision fail\n" +
			"  sallyport promote clusterpoddefault/proxy --force",
	}, true, func(cmd *cobra.Command, r *injection.Revised) error {
		step, overridden, err := r.Promote(cmd.Context(), full, force)
		if err != nil {
			return err
		}
		to := "all new pods"
		if step > 0 {
			to = fmt.Sprintf("step %d", step)
		}
		if overridden != "" {
			to += ", which overrides " + kubeflowv1alpha1.ConditionRolloutHealthy + ": " + overridden
		}
		return o.said(cmd, "%s promoted to %s", r.Title(), to)
	})
	cli.AddFlagGroup(cmd, "Input", func() {
		cmd.Flags().BoolVar(&full, "full", false, "complete the rollout")
		cmd.Flags().BoolVar(&force, "force", false, "promote although the condition RolloutHealthy is False, and print its message")
	})
	return cmd
}

func newAbortCommand() *cobra.Command {
	o := revisedOptions{Flags: clusterFlags()}
	return o.command(&cobra.Command{
		Use:   "abort TYPE/NAME",
		Short: "Abort a rollout: all new pods get the stable revision",
		Long: "Stop the rollout of a PodDefault or ClusterPodDefault: all new pods get the stable revision. The spec stays,\n" +
			"and so do existing pods. The next change starts another rollout.\n\n" +
			"Exit status: 0 success, 1 error.",
		Example: "  sallyport abort poddefault/proxy -n team-a",
	}, true, func(cmd *cobra.Command, r *injection.Revised) error {
		if err := r.Abort(cmd.Context()); err != nil {
			return err
		}
		return o.said(cmd, "%s: rollout aborted", r.Title())
	})
}
