// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/cmd/internal/live/carried"
	"github.com/sallyport-io/sallyport/cmd/internal/live/restart"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/fieldcheck"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/clusterflags"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
)

type restartOptions struct {
	clusterflags.Flags
	all       bool
	dryRun    bool
	yes       bool
	force     bool
	batchSize int
	timeout   time.Duration
}

func newRolloutRestartCommand() *cobra.Command {
	o := restartOptions{Flags: clusterFlags()}
	cmd := &cobra.Command{
		Use:   "restart [TYPE/NAME] [-n NAMESPACE | -A]",
		Short: "Restart the workloads whose pods differ from current PodDefaults",
		Long: "Replace the pods that drift reports as outdated, missing, missed or surplus, of all PodDefaults and\n" +
			"ClusterPodDefaults or only of TYPE/NAME, as 'kubectl rollout restart' does: Deployments, StatefulSets and\n" +
			"DaemonSets, in batches. The next batch begins when all pods of the one before are replaced and available;\n" +
			"it stops at a workload that fails. A workload is not restarted if its new pods would be refused, or if\n" +
			"that is not known: the API server is asked about them by dry runs, with your rights.",
		Example: "  # which workloads would be restarted, then restart them two at a time\n" +
			"  sallyport rollout restart -n team-a --dry-run\n" +
			"  sallyport rollout restart -n team-a --batch-size 2\n\n" +
			"  # those that differ from one object, in all namespaces, without a question\n" +
			"  sallyport rollout restart clusterpoddefault/proxy --all-namespaces --yes",
		Args:              cli.Arguments(0, 2, "one TYPE/NAME or TYPE NAME at most"),
		ValidArgsFunction: completeDefaults(&o.Flags),
		PreRunE:           func(*cobra.Command, []string) error { return o.validate() },
		RunE:              cli.Interruptible(o.run),
	}
	o.AddNamespacedFlags(cmd)
	addAllNamespacesFlag(cmd, &o.all)
	cli.AddFlagGroup(cmd, "Restart", func() {
		flags := cmd.Flags()
		flags.IntVar(&o.batchSize, "batch-size", 5, "`number` of workloads to restart at a time")
		flags.DurationVar(&o.timeout, "timeout", 10*time.Minute, "maximum `duration` to wait for a batch")
		flags.BoolVar(&o.dryRun, "dry-run", false, "change nothing: print what would be restarted; the API server validates the requests without storing them")
		flags.BoolVar(&o.force, "force", false, "skip a safety check: restart workloads without asking whether their new pods would be admitted")
		flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
	})
	return cmd
}

func (o *restartOptions) validate() error {
	errs := []error{allOrOneNamespace(o.all, o.Namespace)}
	if o.batchSize < 1 {
		errs = append(errs, fmt.Errorf("--batch-size %d: must be at least 1", o.batchSize))
	}
	if o.timeout <= 0 {
		errs = append(errs, fmt.Errorf("--timeout %s: must be positive", o.timeout))
	}
	return errors.Join(errs...)
}

func (o *restartOptions) run(ctx context.Context, cmd *cobra.Command, args []string) error {
	c, err := o.Open()
	if err != nil {
		return err
	}
	namespace := c.Namespace
	if o.all {
		namespace = ""
	}
	drift, err := carried.FindDrift(ctx, c, namespace, args, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if err := drift.PrintText(cmd.OutOrStdout()); err != nil || !drift.Drifted() {
		return err
	}
	batches := restart.Batches{Client: c.Client, BatchSize: o.batchSize, Timeout: o.timeout, DryRun: o.dryRun, Out: cmd.ErrOrStderr()}
	if !o.force {
		if batches.Obstacle, err = o.obstacle(cmd, c); err != nil {
			return err
		}
	}
	if !o.yes {
		batches.Confirm = cmd.InOrStdin()
	}
	remains, err := batches.Run(ctx, drift.Restartable(), drift.NotRestartable())
	if err == nil && remains {
		err = exitStatus(exitFound)
	}
	return err
}

// obstacle returns a function for [restart.Batches].
func (o *restartOptions) obstacle(cmd *cobra.Command, c *cluster.Cluster) (func(ctx context.Context, kind, namespace, name string) (string, error), error) {
	asked := defaultsOptions{Flags: o.Flags, validation: fieldcheck.Ignore, askServer: true}
	if err := asked.prepare(cmd, []string{"pods of workloads"}); err != nil {
		return nil, err
	}
	simulator, err := asked.asking(cmd)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, kind, namespace, name string) (string, error) {
		object, err := c.Get(ctx, "/apis/apps/v1/namespaces/"+namespace+"/"+strings.ToLower(kind)+"s/"+name)
		if err != nil {
			return "", err
		}
		return simulator.Obstacle(ctx, object)
	}, nil
}
