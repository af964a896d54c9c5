// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/sallyport-io/sallyport/cmd/internal/live/callmetrics"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/clusterflags"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

type topOptions struct {
	clusterflags.Flags
	window time.Duration
	watch  bool
	text   cli.Text
}

// A topDocument is the output as JSON or YAML. Seconds is 0 for the time since the API server started.
type topDocument struct {
	Seconds float64              `json:"seconds"`
	Usages  []*callmetrics.Usage `json:"usages"`
}

func newTopCommand() *cobra.Command {
	o := topOptions{Flags: clusterFlags()}
	cmd := &cobra.Command{
		Use:   "top [--window DURATION] [--watch]",
		Short: "Show which webhooks and policies slow down API requests",
		Long: "Top reads the API server's metrics of admission: how often it called each webhook and policy, by\n" +
			"operation, how long that took, and the result. Those that requests waited for longest come first.\n" +
			"Percentiles are estimates: the API server counts calls in ranges. Timeouts are among the failed calls;\n" +
			"the API server does not count them apart. Of several API servers, one answers, with its own counters.\n\n" +
			"It needs the right to get the non-resource URL /metrics.",
		Example: "  # within the next 10 seconds\n" +
			"  sallyport top\n\n" +
			"  # since the API server started\n" +
			"  sallyport top --window 0\n\n" +
			"  # refreshed every 30 seconds\n" +
			"  sallyport top --window 30s --watch",
		Args: cli.NoArguments("it shows all webhooks and policies"),
		RunE: cli.Interruptible(o.run),
	}
	o.AddFlags(cmd)
	cli.AddFlagGroup(cmd, "Time", func() {
		cmd.Flags().DurationVar(&o.window, "window", 10*time.Second, "`duration` to watch the counters of the API server; 0 for what they have counted since it started")
		cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "repeat until interrupted; a terminal shows the latest table in place of the one before")
	})
	o.text.AddFlags(cmd, cli.TextOrJSON)
	return cmd
}

func (o *topOptions) run(ctx context.Context, cmd *cobra.Command, _ []string) error {
	err := o.text.Validate(cli.TextOrJSON)
	if o.window < 0 || o.watch && o.window == 0 {
		err = errors.Join(err, errors.New("--window must be positive, or 0 without --watch"))
	}
	if err != nil {
		return err
	}
	c, err := o.Open()
	if err != nil {
		return err
	}
	err = callmetrics.Watch(ctx, c.Client.Discovery().RESTClient(), o.window, o.watch, cmd.ErrOrStderr(), func(usages []*callmetrics.Usage, window time.Duration) error {
		if o.text.Format != "text" {
			return cli.PrintAs(cmd.OutOrStdout(), o.text.Format, topDocument{window.Seconds(), usages})
		}
		screen := o.text.Screen(cmd) // of the size that the terminal has now
		screen.InPlace = o.watch
		return callmetrics.Print(screen, usages, window)
	})
	if apierrors.IsForbidden(err) {
		manifest.Note(cmd.ErrOrStderr(), "it takes a ClusterRole with nonResourceURLs: [/metrics] and verbs: [get]")
	}
	return err
}
