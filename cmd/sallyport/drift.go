// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/cmd/internal/live/carried"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/clusterflags"
)

type driftOptions struct {
	clusterflags.Flags
	all  bool
	text cli.Text
}

func newDriftCommand() *cobra.Command {
	o := driftOptions{Flags: clusterFlags()}
	cmd := &cobra.Command{
		Use:   "drift [TYPE/NAME] [-n NAMESPACE | -A]",
		Short: "Show which running pods differ from current PodDefaults, or missed them",
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
			"'rollout restart' replaces the pods that are outdated, missing, missed or surplus.",
		Example: "  sallyport drift --all-namespaces\n\n" +
			"  # only pods with an old revision of one object\n" +
			"  sallyport drift poddefault/proxy -n team-a -o json",
		Args:              cli.Arguments(0, 2, "one TYPE/NAME or TYPE NAME at most"),
		ValidArgsFunction: completeDefaults(&o.Flags),
		PreRunE:           func(*cobra.Command, []string) error { return o.validate() },
		RunE:              cli.Interruptible(o.run),
	}
	o.AddNamespacedFlags(cmd)
	addAllNamespacesFlag(cmd, &o.all)
	o.text.AddFlags(cmd, cli.TextOrJSON)
	return cmd
}

func (o *driftOptions) validate() error {
	return errors.Join(o.text.Validate(cli.TextOrJSON), allOrOneNamespace(o.all, o.Namespace))
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
	drift, err := carried.FindDrift(ctx, c, namespace, args, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if o.text.Format != "text" {
		err = cli.PrintAs(cmd.OutOrStdout(), o.text.Format, drift)
	} else {
		err = drift.PrintText(o.text.Screen(cmd))
	}
	if err == nil && drift.Drifted() {
		err = exitStatus(exitFound)
	}
	return err
}
