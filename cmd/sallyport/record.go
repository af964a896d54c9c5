// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/cmd/internal/live/fetch"
	"github.com/sallyport-io/sallyport/cmd/internal/serve"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/clusterflags"
)

type recordOptions struct {
	clusterflags.Flags
	fetch.Options
	caFile string
	output string
}

func newRecordCommand() *cobra.Command {
	o := recordOptions{Flags: clusterFlags()}
	cmd := &cobra.Command{
		Use:   "record [--to-file FILE] [--for DURATION]",
		Short: "Fetch the latest reviews that the servers keep in memory, for replay",
		Long: "Record reads the latest reviews from all replicas of the server, ordered by time. The server keeps them in\n" +
			"memory if recording.recentReviews is set in its configuration, without values of environment variables,\n" +
			"annotations and Secrets. Pods are reached through the API server, as by kubectl port-forward. The certificate\n" +
			"of the server is verified as the API server verifies it.\n\n" +
			"The server asks the API server whether you may get the non-resource URL /recorded-reviews. It gets the\n" +
			"credentials of your kubeconfig; with --as-service-account, a ten-minute token instead.",
		Example: "  # the latest reviews, for sallyport replay -f reviews.jsonl\n" +
			"  sallyport record --to-file reviews.jsonl\n\n" +
			"  # also those of the next five minutes\n" +
			"  sallyport record --for 5m --to-file reviews.jsonl\n\n" +
			"  # without sending your own token\n" +
			"  sallyport record --as-service-account sallyport-system/reader",
		Args:    cli.NoArguments("name the file to write with --to-file"),
		PreRunE: func(*cobra.Command, []string) error { return o.validate() },
		RunE:    cli.Interruptible(o.run),
	}
	o.AddFlags(cmd)
	flags := cmd.Flags()
	cli.AddFlagGroup(cmd, "Server", func() {
		flags.StringVar(&o.Configuration, "configuration-name", serve.Name, "`name` of the webhook configurations")
		flags.IntVar(&o.Port, "metrics-port", 8080, "`port` of the replicas for metrics and recent reviews")
		flags.StringArrayVar(&o.Replicas, "replica", nil, "`url` where that port of a replica can be reached from here, such as https://127.0.0.1:8080, instead of the replicas of the Service; may be repeated")
		flags.StringVar(&o.caFile, "ca-file", "", "`file` with the PEM-encoded CA bundle that verifies the server's certificate; defaults to the caBundle of the webhook configurations")
		flags.StringVar(&o.ServiceAccount, "as-service-account", "", "present a token of this service account, `namespace/name`, instead of your own credentials")
	})
	cli.AddFlagGroup(cmd, "Output", func() {
		flags.DurationVar(&o.For, "for", 0, "also write reviews recorded within this `duration`, ordered by time within each 2 seconds; 0 to read once")
		flags.StringVar(&o.output, "to-file", "-", "`file` to write, one review a line; - for stdout")
	})
	cli.CompleteFiles(cmd, "to-file", "jsonl")
	cli.CompleteFiles(cmd, "ca-file")
	return cmd
}

// validate reports every problem of the flags.
func (o *recordOptions) validate() error {
	var errs []error
	if o.Port < 1 || o.Port > 65535 {
		errs = append(errs, fmt.Errorf("--metrics-port %d is outside 1 to 65535", o.Port))
	}
	for _, replica := range o.Replicas {
		if u, err := url.Parse(replica); err != nil || u.Host == "" || u.Scheme != "https" {
			errs = append(errs, fmt.Errorf("--replica %q: write a URL such as https://127.0.0.1:8080", replica))
		}
	}
	if namespace, name, _ := strings.Cut(o.ServiceAccount, "/"); o.ServiceAccount != "" && (namespace == "" || name == "") {
		errs = append(errs, fmt.Errorf("--as-service-account %q: write NAMESPACE/NAME", o.ServiceAccount))
	}
	if o.For < 0 || o.For > time.Hour {
		errs = append(errs, fmt.Errorf("--for %s is outside 0 to 1h", o.For))
	}
	var err error
	o.CABundle, err = cli.ReadCABundle("ca-file", o.caFile)
	return errors.Join(append(errs, err)...)
}

func (o *recordOptions) run(ctx context.Context, cmd *cobra.Command, _ []string) error {
	var err error
	if o.Cluster, err = o.Open(); err != nil {
		return err
	}
	o.Notes = cmd.ErrOrStderr()
	if o.output == "-" {
		return fetch.Run(ctx, o.Options, cmd.OutOrStdout())
	}
	const mode = 0o600 // command lines and ConfigMaps are recorded as they are
	file, err := os.OpenFile(o.output, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	return errors.Join(fetch.Run(ctx, o.Options, file), file.Close())
}
