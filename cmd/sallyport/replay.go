// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/fieldcheck"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/recorded"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/served"
	"github.com/sallyport-io/sallyport/cmd/internal/serve"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// replaySide is a configuration with the objects that its webhooks read.
type replaySide struct {
	config string
	with   []string
}

type replayOptions struct {
	files       []string
	now, before replaySide
	partly      bool
	output      string
}

func newReplayCommand() *cobra.Command {
	o := replayOptions{}
	cmd := &cobra.Command{
		Use:   "replay -f FILE [--config FILE] [--with FILE|FOLDER ...]",
		Short: "Replay recorded requests against another configuration",
		Long: "Replay reads recorded requests: recordings of serve (recording in its configuration),\n" +
			"AdmissionReviews with their responses, and kube-apiserver's audit log with request objects. It answers them\n" +
			"with your configuration and PodDefaults, and groups the decisions that differ from the recorded ones or,\n" +
			"with --before-config and --before-with, from those of another configuration. It sends nothing.",
		Example: "  # what would the new PodDefaults change in yesterday's pods?\n" +
			"  sallyport replay -f reviews.jsonl --config new.yaml --with new/\n\n" +
			"  # the same from an audit log, between two versions of the policies\n" +
			"  sallyport replay -f audit.log --with new/ --before-with old/",
		Args: cli.NoArguments("pass the files with the requests with -f"),
		RunE: cli.Interruptible(o.run),
	}
	flags := cmd.Flags()
	cli.AddFlagGroup(cmd, "Requests", func() {
		flags.StringArrayVarP(&o.files, "filename", "f", nil, "`file` or folder with recorded requests; - for stdin; may be repeated")
	})
	cli.AddFlagGroup(cmd, "Configurations", func() {
		flags.StringVar(&o.now.config, "config", "", "`file` with a SallyportConfiguration, whose webhooks answer")
		flags.StringArrayVar(&o.now.with, "with", nil, "`file` or folder with objects for its webhooks, such as PodDefaults; may be repeated")
		flags.StringVar(&o.before.config, "before-config", "", "`file` with a SallyportConfiguration to compare with, instead of the recorded decisions")
		flags.StringArrayVar(&o.before.with, "before-with", nil, "`file` or folder with objects for the webhooks of --before-config; may be repeated")
	})
	for _, flag := range []string{"filename", "config", "with", "before-config", "before-with"} {
		cli.CompleteFiles(cmd, flag, append(manifest.Extensions, "jsonl", "log")...)
	}
	cli.AddFlagGroup(cmd, "Output", func() {
		flags.BoolVar(&o.partly, "allow-unknown", false, "accept what is unknown: exit with 0 although some requests could not be compared")
	})
	cli.AddOutputFlag(cmd, &o.output, cli.TextOrJSON)
	return cmd
}

func (o *replayOptions) run(ctx context.Context, cmd *cobra.Command, _ []string) error {
	err := cli.Choice("output", o.output, cli.TextOrJSON)
	if len(o.files) == 0 {
		err = errors.Join(err, errors.New("-f is required: a file with recorded requests, or - for stdin"))
	}
	err = errors.Join(err, manifest.StdinOnce(slices.Concat(o.files, o.now.with, o.before.with)))
	run := recorded.Run{Files: o.files, Stdin: cmd.InOrStdin()}
	load := func(side replaySide) *review.Run {
		config, errConfig := serve.Load(side.config, nil, serve.OfDeployment...)
		if err = errors.Join(err, errConfig); errConfig != nil {
			return nil
		}
		out := &review.Run{With: side.with, Stdin: cmd.InOrStdin(), Notes: cmd.ErrOrStderr(), Namespace: "default", Validation: fieldcheck.Modes[0]}
		served.Review(out, config)
		return out
	}
	run.Now = load(o.now)
	if o.before.config != "" || len(o.before.with) > 0 {
		run.Before = load(o.before)
	}
	if err != nil {
		return err
	}
	result, err := run.Do(ctx)
	if result == nil {
		return err
	}
	print := result.Print
	if o.output != "text" {
		print = func(out io.Writer) error { return cli.PrintAs(out, o.output, result) }
	}
	if err := errors.Join(print(cmd.OutOrStdout()), err); err != nil {
		return err
	}
	switch {
	case result.Different > 0:
		return exitStatus(exitFound)
	case !result.Complete() && !o.partly:
		return exitStatus(exitPartly)
	}
	return nil
}
