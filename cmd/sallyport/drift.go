// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/cmd/internal/live/injection"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/fieldcheck"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
)

type driftOptions struct {
	cluster.Flags
	all       bool
	output    string
	restart   bool
	dryRun    bool
	yes       bool
	force     bool
	batchSize int
	timeout   time.Duration
}

func newDriftCommand() *cobra.Command {
	o := driftOptions{Flags: clusterFlags()}
	cmd := &cobra.Command{
		Use:   "drift [TYPE/NAME] [-n NAMESPACE | -A] [--restart]",
		Short: "Compare running pods with current PodDefaults, and restart workloads that differ",
		Long: "Pods get PodDefaults when they are created and never later. For each PodDefault and ClusterPodDefault, or\n" +
			"only for TYPE/NAME, show how many running pods\n\n" +
			"  current   carry the current revision\n" +
			"  outdated  carry an earlier revision\n" +
			"  unknown   carry a revision that they do not name, because Kubeflow's webhook injected them\n" +
			"  missing   should carry it and do not: they are older than its last change\n" +
			"  missed    should carry it and do not, although they are younger: the webhook was not called for them, as in\n" +
			"            an outage with failure policy Ignore, or because another client had narrowed its configuration\n" +
			"  surplus   carry it but should no longer: it is deleted, in mode Audit, or does not select them now\n" +
			"  exempt    do not carry it because their namespace exempts them for a time\n\n" +
			"and the workloads with such pods, and the exemptions that have not ended. It reads the metadata of pods and of their owners with your rights.\n" +
			"Pods are compared with the selectors of the objects. Exclusions of the server's own configuration, such as\n" +
			"registration.excludedNamespaces, are respected; exclusions by other clients are not.\n" +
			"Conflicts are not replayed: see preview for what a new pod would get.\n\n" +
			"With --restart, replace the pods that are outdated, missing, missed or surplus as 'kubectl rollout restart' does:\n" +
			"Deployments, StatefulSets and DaemonSets, in batches. The next batch begins when all pods of the one before\n" +
			"are replaced and available; it stops at a workload that fails. A workload is not restarted if its new pods\n" +
			"would be refused, or if that is not known: the API server is asked about them by dry runs, with your rights.\n\n" +
			"Exit status: 0 if no pod differs or all workloads were restarted, 2 if some pods differ, 1 anything else.",
		Example: "  sallyport drift --all-namespaces\n\n" +
			"  # only pods with an old revision of one object\n" +
			"  sallyport drift poddefault/proxy -n team-a -o json\n\n" +
			"  # which workloads would be restarted, then restart them two at a time\n" +
			"  sallyport drift -n team-a --restart --dry-run\n" +
			"  sallyport drift -n team-a --restart --batch-size 2",
		Args:              cli.Arguments(0, 2, "one TYPE/NAME or TYPE NAME at most"),
		ValidArgsFunction: completeDefaults(&o.Flags),
		PreRunE:           func(*cobra.Command, []string) error { return o.validate() },
		RunE:              cli.Interruptible(o.run),
	}
	o.AddNamespacedFlags(cmd)
	cli.AddFlagGroup(cmd, "Cluster", func() {
		cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "compare the pods of all namespaces")
	})
	cli.AddFlagGroup(cmd, "Restart", func() {
		flags := cmd.Flags()
		flags.BoolVar(&o.restart, "restart", false, "restart workloads with pods that are outdated, missing, missed or surplus")
		flags.IntVar(&o.batchSize, "batch-size", 5, "`number` of workloads to restart at a time")
		flags.DurationVar(&o.timeout, "timeout", 10*time.Minute, "how `long` a batch may take")
		flags.BoolVar(&o.dryRun, "dry-run", false, "print what would be restarted; the API server validates the requests without storing them")
		flags.BoolVar(&o.force, "force", false, "restart workloads without asking whether their new pods would be admitted")
		flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
	})
	cli.AddOutputFlag(cmd, &o.output, cli.TextOrJSON)
	return cmd
}

func (o *driftOptions) validate() error {
	errs := []error{cli.Choice("output", o.output, cli.TextOrJSON)}
	if o.all && o.Namespace != "" {
		errs = append(errs, errors.New("--all-namespaces and --namespace cannot be used together"))
	}
	if o.batchSize < 1 {
		errs = append(errs, fmt.Errorf("--batch-size %d: must be at least 1", o.batchSize))
	}
	if o.timeout <= 0 {
		errs = append(errs, fmt.Errorf("--timeout %s: must be positive", o.timeout))
	}
	if !o.restart && (o.dryRun || o.yes || o.force) {
		errs = append(errs, errors.New("--dry-run, --force and --yes require --restart"))
	}
	return errors.Join(errs...)
}

func (o *driftOptions) run(ctx context.Context, cmd *cobra.Command, args []string) error {
	c, err := o.Open()
	if err != nil {
		return err
	}
	namespace := c.Namespace
	if o.all {
		namespace = ""
	}
	drift, err := injection.FindDrift(ctx, c, namespace, args, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if o.output == "json" {
		err = cli.PrintJSON(cmd.OutOrStdout(), drift)
	} else {
		err = drift.PrintText(cmd.OutOrStdout())
	}
	switch {
	case err != nil || !drift.Drifted():
		return err
	case !o.restart:
		return exitStatus(exitFound)
	}
	restart := injection.Restart{Client: c.Client, BatchSize: o.batchSize, Timeout: o.timeout, DryRun: o.dryRun, Out: cmd.ErrOrStderr()}
	if !o.force {
		if restart.Obstacle, err = o.obstacle(cmd, c); err != nil {
			return err
		}
	}
	if !o.yes {
		restart.Confirm = cmd.InOrStdin()
	}
	remains, err := restart.Run(ctx, drift)
	if err == nil && remains {
		err = exitStatus(exitFound)
	}
	return err
}

// obstacle returns a function for [injection.Restart].
func (o *driftOptions) obstacle(cmd *cobra.Command, c *cluster.Cluster) (func(ctx context.Context, kind, namespace, name string) (string, error), error) {
	asked := defaultsOptions{Flags: o.Flags, validation: fieldcheck.Ignore, askServer: true}
	if err := asked.prepare(cmd, []string{"pods of workloads"}); err != nil {
		return nil, err
	}
	trial, err := asked.asking(cmd)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, kind, namespace, name string) (string, error) {
		object, err := c.Get(ctx, "/apis/apps/v1/namespaces/"+namespace+"/"+strings.ToLower(kind)+"s/"+name)
		if err != nil {
			return "", err
		}
		return trial.Obstacle(ctx, object)
	}, nil
}
