// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/live/injection"
	"github.com/sallyport-io/sallyport/cmd/internal/live/rollout"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/clusterflags"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// revisedOptions are the options of commands about the revisions of one object.
type revisedOptions struct {
	clusterflags.Flags
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
			cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "change nothing: the API server validates the change without storing it")
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

func newRolloutCommand() *cobra.Command {
	cmd := group("rollout", "Follow, promote and undo changes of a PodDefault",
		"Changes of a PodDefault or ClusterPodDefault reach new pods in the steps of its spec.rollout, and each\n"+
			"change is kept as a revision. TYPE is poddefault or clusterpoddefault; NAME alone is a PodDefault.")
	cmd.AddCommand(newRolloutStatusCommand(), newRolloutHistoryCommand(), newRolloutDiffCommand(), newRolloutPromoteCommand(),
		newRolloutAbortCommand(), newRolloutUndoCommand(), newRolloutRestartCommand())
	return cmd
}

func newRolloutStatusCommand() *cobra.Command {
	o, output, watch, timeout := revisedOptions{Flags: clusterFlags()}, "", false, time.Duration(0)
	cmd := o.command(&cobra.Command{
		Use:   "status TYPE/NAME",
		Short: "Show how far a rollout has got",
		Long: "Show which step the rollout of a PodDefault or ClusterPodDefault has reached, and how many running pods have\n" +
			"its current revision. Steps may hold for hours, so the command waits for the end only with --watch.",
		Example: "  sallyport rollout status poddefault/proxy -n team-a\n\n" +
			"  # wait until all new pods get the change\n" +
			"  sallyport rollout status poddefault/proxy -n team-a --watch --timeout 1h",
		PreRunE: func(*cobra.Command, []string) error {
			err := cli.Choice("output", output, cli.TextOrJSON)
			if timeout < 0 || timeout > 0 && !watch {
				err = errors.Join(err, errors.New("--timeout requires --watch, and must not be negative"))
			}
			return err
		},
	}, false, nil)
	cmd.RunE = cli.Interruptible(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		if timeout > 0 {
			var stop context.CancelFunc
			ctx, stop = context.WithTimeout(ctx, timeout)
			defer stop()
		}
		cmd.SetContext(ctx)
		for last := ""; ; {
			r, err := o.read(cmd, args[0])
			if err != nil {
				return err
			}
			state := r.RolloutState()
			line, ended := state.Line(), !watch || state.Complete() || state.Aborted()
			switch {
			case output != "text" && ended:
				err = cli.PrintAs(cmd.OutOrStdout(), output, state)
			case output == "text" && (ended || line != last):
				_, err = fmt.Fprintln(cmd.OutOrStdout(), line)
			}
			switch {
			case err != nil:
				return err
			case ended && (state.Aborted() || state.Unhealthy != ""):
				return exitStatus(exitFound)
			case ended:
				return nil
			}
			last = line
			select {
			case <-ctx.Done():
				return fmt.Errorf("the rollout has not ended: %s", line)
			case <-time.After(2 * time.Second):
			}
		}
	})
	cli.AddFlagGroup(cmd, "Waiting", func() {
		cmd.Flags().BoolVarP(&watch, "watch", "w", false, "repeat until it ends or is interrupted")
		cmd.Flags().DurationVar(&timeout, "timeout", 0, "with --watch: maximum `duration` to wait; 0 waits without a limit")
	})
	cli.AddOutputFlag(cmd, &output, cli.TextOrJSON)
	return cmd
}

func newRolloutHistoryCommand() *cobra.Command {
	o, number, output := revisedOptions{Flags: clusterFlags()}, "", ""
	cmd := o.command(&cobra.Command{
		Use:   "history TYPE/NAME",
		Short: "List the revisions of a PodDefault, or show the spec of one",
		Long: "List the recorded revisions of a PodDefault or ClusterPodDefault, which of them is current or stable, and\n" +
			"the state of a rollout.",
		Example: "  sallyport rollout history poddefault/proxy -n team-a\n\n" +
			"  # what revision 3 adds to pods\n" +
			"  sallyport rollout history poddefault/proxy -n team-a --revision 3",
	}, false, func(cmd *cobra.Command, r *injection.Revised) error {
		if err := cli.Choice("output", output, cli.TextOrJSON); err != nil {
			return err
		}
		var one *revision.Record
		if number != "" {
			var err error
			if one, err = r.Revision(number); err != nil {
				return err
			}
		}
		switch {
		case output != "text":
			for _, refused := range r.Refused {
				manifest.Note(cmd.ErrOrStderr(), "warning: %s is ignored: %v", refused, refused.Problem)
			}
			return cli.PrintAs(cmd.OutOrStdout(), output, historyOf(r, one))
		case one == nil:
			return r.PrintHistory(cmd.OutOrStdout(), cmd.ErrOrStderr())
		}
		return rollout.PrintSpec(cmd.OutOrStdout(), one)
	})
	cli.AddFlagGroup(cmd, "Output", func() {
		cmd.Flags().StringVar(&number, "revision", "", "`number` or name of the revision, or the first digits of its name; defaults to all, in a table")
	})
	cli.AddOutputFlag(cmd, &output, cli.TextOrJSON)
	return cmd
}

func newRolloutDiffCommand() *cobra.Command {
	o, number, output := revisedOptions{Flags: clusterFlags()}, "", ""
	cmd := o.command(&cobra.Command{
		Use:   "diff TYPE/NAME",
		Short: "Show how a PodDefault differs from an earlier revision",
		Long: "Show how a PodDefault or ClusterPodDefault differs from an earlier revision of it, as a unified diff. Nothing\n" +
			"is printed if it does not differ. 'sallyport diff' shows what PodDefaults change in a pod.",
		Example: "  # the last change\n" +
			"  sallyport rollout diff poddefault/proxy -n team-a\n\n" +
			"  # all changes since revision 3\n" +
			"  sallyport rollout diff poddefault/proxy -n team-a --revision 3",
	}, false, func(cmd *cobra.Command, r *injection.Revised) error {
		if err := cli.Choice("output", output, cli.TextOrJSON); err != nil {
			return err
		}
		one, err := r.Revision(number)
		if err != nil {
			return err
		}
		state := r.RolloutState()
		if output == "text" {
			return rollout.PrintDiff(cmd.OutOrStdout(), one, state)
		}
		var text strings.Builder
		if err := rollout.PrintDiff(&text, one, state); err != nil {
			return err
		}
		return cli.PrintAs(cmd.OutOrStdout(), output, revisionDiff{state.Object, one.Name, state.Revision, text.String()})
	})
	cli.AddFlagGroup(cmd, "Input", func() {
		cmd.Flags().StringVar(&number, "revision", "", "`number` or name of the revision, or the first digits of its name; defaults to the latest one before the current")
	})
	cli.AddOutputFlag(cmd, &output, cli.TextOrJSON)
	return cmd
}

func newRolloutUndoCommand() *cobra.Command {
	o, to, now := revisedOptions{Flags: clusterFlags()}, "", false
	cmd := o.command(&cobra.Command{
		Use:   "undo TYPE/NAME",
		Short: "Give a PodDefault the spec of an earlier revision",
		Long: "Give a PodDefault or ClusterPodDefault the spec of an earlier revision. Its description, rollout and limit\n" +
			"of revisions stay. If it has a rollout, the steps apply to this change too, unless you give --now. A change\n" +
			"back to the stable revision ends a rollout. The output says which revision new pods get.",
		Example: "  # undo the last change, for all new pods at once\n" +
			"  sallyport rollout undo poddefault/proxy -n team-a --now\n\n" +
			"  sallyport rollout undo clusterpoddefault/proxy --to-revision 3 --dry-run",
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

func newRolloutPromoteCommand() *cobra.Command {
	o, full, force := revisedOptions{Flags: clusterFlags()}, false, false
	cmd := o.command(&cobra.Command{
		Use:   "promote TYPE/NAME",
		Short: "Promote a rollout to its next step",
		Long: "Promote the rollout of a PodDefault or ClusterPodDefault to its next step without waiting. It is refused while\n" +
			"the condition RolloutHealthy is False, unless you override it with --force.",
		Example: "  sallyport rollout promote poddefault/proxy -n team-a\n\n" +
			"  # skip the other steps\n" +
			"  sallyport rollout promote poddefault/proxy -n team-a --full\n\n" +
			"  # although pods with the new revision fail\n" +
			"  sallyport rollout promote clusterpoddefault/proxy --force",
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
		cmd.Flags().BoolVar(&force, "force", false, "skip a safety check: promote although the condition RolloutHealthy is False, and print its message")
	})
	return cmd
}

func newRolloutAbortCommand() *cobra.Command {
	o := revisedOptions{Flags: clusterFlags()}
	return o.command(&cobra.Command{
		Use:   "abort TYPE/NAME",
		Short: "Abort a rollout: all new pods get the stable revision",
		Long: "Stop the rollout of a PodDefault or ClusterPodDefault: all new pods get the stable revision. The spec stays,\n" +
			"and so do existing pods. The next change starts another rollout.",
		Example: "  sallyport rollout abort poddefault/proxy -n team-a",
	}, true, func(cmd *cobra.Command, r *injection.Revised) error {
		if err := r.Abort(cmd.Context()); err != nil {
			return err
		}
		return o.said(cmd, "%s: rollout aborted", r.Title())
	})
}

// A rolloutHistory is the output of rollout history for programs: docs/poddefault-operations.md has its fields.
type rolloutHistory struct {
	Rollout   *rollout.State  `json:"rollout"`
	Revisions []revisionEntry `json:"revisions"`
}

type revisionEntry struct {
	Number  int64     `json:"number"`
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	// Current is the revision of the object, and Stable that of pods which no step of a rollout includes.
	Current bool `json:"current,omitempty"`
	Stable  bool `json:"stable,omitempty"`
	// Spec is what the revision adds to pods. It is set if one revision was asked for.
	Spec json.RawMessage `json:"spec,omitempty"`
}

// historyOf returns the revisions, the latest last, or with one that alone.
func historyOf(r *injection.Revised, one *revision.Record) rolloutHistory {
	out := rolloutHistory{Rollout: r.RolloutState(), Revisions: []revisionEntry{}}
	for i := len(r.Revisions) - 1; i >= 0; i-- {
		record := r.Revisions[i]
		if one != nil && record.Name != one.Name {
			continue
		}
		entry := revisionEntry{Number: record.Number, Name: record.Name, Created: record.Created.UTC(), Current: record.Name == out.Rollout.Revision, Stable: record.Name == out.Rollout.Stable}
		if one != nil {
			entry.Spec = json.RawMessage(record.Meaning)
		}
		out.Revisions = append(out.Revisions, entry)
	}
	return out
}

// A revisionDiff is the output of rollout diff for programs.
type revisionDiff struct {
	Object string `json:"object"`
	// From and To are names of revisions.
	From string `json:"from"`
	To   string `json:"to"`
	// Diff is a unified diff of the specs, empty if they do not differ.
	Diff string `json:"diff"`
}
