// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/suite"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

type testOptions struct {
	suite.Options
	files              []string
	run, output, color string
	verbose            bool
}

func newTestCommand() *cobra.Command {
	o := testOptions{}
	cmd := &cobra.Command{
		Use:   "test -f FILE|FOLDER",
		Short: "Run test cases for policies, without any cluster",
		Long: "Test reviews the objects of each case with the webhooks that serve would host, and compares the result\n" +
			"with the expectations of the case: allowed or denied, warnings, whole objects or parts of them, patches, and\n" +
			"which PodDefault wanted a change. A case stands in a file of kind Suite, or is a folder with object.yaml,\n" +
			"with.yaml and want.yaml. A broken file does not stop the other cases. See docs/testing.md.",
		Example: "  # all suites and cases below a folder\n" +
			"  sallyport test -f policies/\n\n" +
			"  # those about notebooks, each with its time\n" +
			"  sallyport test -f policies/ --run notebook --verbose\n\n" +
			"  # accept the current results: write them to the expected files\n" +
			"  sallyport test -f policies/ --update\n\n" +
			"  # for a pipeline\n" +
			"  sallyport test -f policies/ -o junit > results.xml",
		Args: cli.NoArguments("pass suites, or folders with suites and cases, with -f"),
		RunE: cli.Interruptible(o.test),
	}
	flags := cmd.Flags()
	cli.AddFlagGroup(cmd, "Cases", func() {
		flags.StringArrayVarP(&o.files, "filename", "f", nil, "`file` or folder with suites and cases; may be repeated")
		cli.CompleteFiles(cmd, "filename", manifest.Extensions...)
		flags.StringVar(&o.run, "run", "", "`regexp` of the cases to run, by SUITE/NAME (default all)")
		flags.BoolVar(&o.FailOnWarnings, "fail-on-warnings", false, "fail a case on a warning that it does not expect")
		flags.BoolVar(&o.AllowUnknown, "allow-unknown", false, "accept what is unknown: only warn of a case whose result depends on an object that is missing from its files, such as a PriorityClass")
		flags.BoolVar(&o.Update, "update", false, "write the results to the files with expected objects, patches and denials")
		flags.IntVar(&o.Parallel, "parallel", 0, "`number` of cases that run at a time (default one a processor)")
	})
	cli.AddOutputFlag(cmd, &o.output, suite.Outputs)
	cli.AddFlagGroup(cmd, "Output", func() {
		cli.AddColorFlag(cmd, &o.color, "the text")
		flags.BoolVar(&o.verbose, "verbose", false, "also print passing cases and all notes")
	})
	return cmd
}

func (o *testOptions) test(ctx context.Context, cmd *cobra.Command, _ []string) error {
	err := errors.Join(cli.Choice("output", o.output, suite.Outputs), cli.Choice("color", o.color, cli.ColorChoices))
	if len(o.files) == 0 {
		err = errors.Join(err, errors.New("-f is required: pass a suite, or a folder with suites and cases"))
	}
	if o.Parallel < 0 {
		err = errors.Join(err, errors.New("--parallel must not be negative"))
	}
	if o.run != "" {
		var errRun error
		if o.Run, errRun = regexp.Compile(o.run); errRun != nil {
			err = errors.Join(err, fmt.Errorf("--run: %w", errRun))
		}
	}
	if err != nil {
		return err
	}
	cases, err := suite.Load(o.files)
	if err != nil {
		return err
	}
	if o.Run != nil && !slices.ContainsFunc(cases, func(c *suite.Case) bool { return o.Run.MatchString(c.Title()) }) {
		return fmt.Errorf("--run %q selects none of %s: it is matched with SUITE/NAME, such as %s", o.run, cli.Count(len(cases), "case", "cases"), cases[0].Title())
	}
	start := time.Now()
	printer := suite.Printer{Out: cmd.OutOrStdout(), Output: o.output, Verbose: o.verbose, Color: cli.UseColor(o.color, cmd.OutOrStdout())}
	suite.Run(ctx, cases, o.Options, printer.Print)
	n, err := printer.End(time.Since(start))
	switch {
	case err != nil:
		return err
	case n.Broken > 0 || n.Unknown > 0:
		return exitStatus(exitError)
	case n.Failed > 0:
		return exitStatus(exitFound)
	}
	return nil
}
