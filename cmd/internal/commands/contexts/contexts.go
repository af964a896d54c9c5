// SPDX-License-Identifier: Apache-2.0

// Package contexts runs a command that reads one cluster on several, side by side. What goes in is a constructor of the
// command; each cluster gets a command of its own with the same flags and arguments and its --context. What comes out
// is what each has printed, cluster by cluster, or one document with all. It reads nothing itself, and never lets a
// cluster that is slow or down hold up the others.
package contexts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/clusterflags"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// atOnce is how many clusters are read side by side: each takes memory for what it has, and processor time.
const atOnce = 4

// DefaultTimeout is for one cluster.
const DefaultTimeout = time.Minute

// own are the flags that are not passed on.
var own = []string{"contexts", "all-contexts", "context-timeout", "context"}

// A Result is what the command has said of one cluster.
type Result struct {
	Context string `json:"context"`
	// Status is the exit status of the command for this cluster.
	Status int `json:"exitStatus"`
	// Error is why the cluster could not be read.
	Error string `json:"error,omitempty"`
	// Notes are what the command has printed to stderr.
	Notes []string `json:"notes,omitempty"`
	// Result is the document of the command.
	Result any `json:"result,omitempty"`

	text []byte
}

// Results is the document of a command over several clusters.
type Results struct {
	Contexts []*Result `json:"contexts"`
}

type options struct {
	build    func() *cobra.Command
	contexts []string
	all      bool
	timeout  time.Duration
}

// Command returns the command that build makes, with flags for several clusters. It must have the flags of
// [clusterflags.Flags].
func Command(build func() *cobra.Command) *cobra.Command {
	o := options{build: build}
	cmd := build()
	one, before := cmd.RunE, cmd.PreRunE
	cli.AddFlagGroup(cmd, "Cluster", func() {
		flags := cmd.Flags()
		flags.StringSliceVar(&o.contexts, "contexts", nil, "`names` of kubeconfig contexts to read side by side")
		flags.BoolVar(&o.all, "all-contexts", false, "read all contexts of the kubeconfig side by side")
		flags.DurationVar(&o.timeout, "context-timeout", DefaultTimeout, "`duration` after which one of several clusters is given up")
	})
	if complete, ok := cmd.GetFlagCompletionFunc("context"); ok {
		_ = cmd.RegisterFlagCompletionFunc("contexts", complete)
	}
	several := func() bool { return o.all || len(o.contexts) > 0 }
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if several() {
			return o.validate(cmd)
		}
		if cmd.Flags().Changed("context-timeout") {
			return errors.New("--context-timeout requires --contexts or --all-contexts")
		}
		if before == nil {
			return nil
		}
		return before(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if several() {
			return cli.Interruptible(o.run)(cmd, args)
		}
		return one(cmd, args)
	}
	return cmd
}

func (o *options) validate(cmd *cobra.Command) error {
	var errs []error
	flags := cmd.Flags()
	if o.all && len(o.contexts) > 0 {
		errs = append(errs, errors.New("choose --contexts or --all-contexts, not both"))
	}
	for _, name := range []string{"context", "watch", "dial", "replica"} {
		if flags.Changed(name) {
			errs = append(errs, fmt.Errorf("--%s is for one cluster: leave it out with several", name))
		}
	}
	if o.timeout <= 0 {
		errs = append(errs, fmt.Errorf("--context-timeout %s must be positive", o.timeout))
	}
	if format := o.format(cmd); !slices.Contains(cli.TextOrJSON, format) {
		errs = append(errs, fmt.Errorf("--output %s is for one cluster: choose %s", format, cli.OneOf(cli.TextOrJSON)))
	}
	return errors.Join(errs...)
}

func (o *options) format(cmd *cobra.Command) string {
	if flag := cmd.Flags().Lookup("output"); flag != nil {
		return flag.Value.String()
	}
	return cli.TextOrJSON[0]
}

// names are the contexts to read, each once.
func (o *options) names(cmd *cobra.Command) ([]string, error) {
	kubeconfig, err := cmd.Flags().GetString("kubeconfig")
	if err != nil {
		return nil, err
	}
	known, err := (&clusterflags.Flags{Kubeconfig: kubeconfig}).Contexts()
	if err != nil {
		return nil, err
	}
	if o.all {
		if len(known) == 0 {
			return nil, errors.New("the kubeconfig has no contexts; set --kubeconfig")
		}
		slices.Sort(known)
		return known, nil
	}
	var names []string
	var errs []error
	for _, name := range o.contexts {
		switch {
		case !slices.Contains(known, name):
			errs = append(errs, fmt.Errorf("--contexts: the kubeconfig has no context %q: choose %s", name, cli.OneOf(known)))
		case !slices.Contains(names, name):
			names = append(names, name)
		}
	}
	return names, errors.Join(errs...)
}

func (o *options) run(ctx context.Context, cmd *cobra.Command, args []string) error {
	names, err := o.names(cmd)
	if err != nil {
		return err
	}
	var stdin []byte
	if readsStdin(cmd.Flags()) {
		if stdin, err = io.ReadAll(cmd.InOrStdin()); err != nil {
			return err
		}
	}
	given := cli.Given(cmd.Flags(), func(flag *pflag.Flag) bool { return !slices.Contains(own, flag.Name) })
	if flag := cmd.Flags().Lookup("cluster"); flag != nil && !flag.Changed { // of lint, which reads files otherwise
		given = append(given, "--cluster")
	}
	format := o.format(cmd)
	results := make([]*Result, len(names))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, name := range names {
		group.Go(func() error {
			results[i] = o.read(ctx, name, slices.Concat(given, []string{"--context=" + name}, args), stdin, format)
			return nil
		})
	}
	_ = group.Wait() // what failed is in the results
	if err := ctx.Err(); err != nil {
		return err
	}
	if format == cli.TextOrJSON[0] {
		err = printText(cmd.OutOrStdout(), cmd.ErrOrStderr(), results)
	} else {
		err = cli.PrintAs(cmd.OutOrStdout(), format, Results{Contexts: results})
	}
	if err != nil {
		return err
	}
	return status(results)
}

// readsStdin tells whether a flag names the standard input, which all commands get.
func readsStdin(flags *pflag.FlagSet) (reads bool) {
	flags.Visit(func(flag *pflag.Flag) {
		if list, ok := flag.Value.(pflag.SliceValue); ok && slices.Contains(list.GetSlice(), "-") || flag.Value.String() == "-" {
			reads = true
		}
	})
	return reads
}

// read runs the command on one cluster.
func (o *options) read(ctx context.Context, name string, args []string, stdin []byte, format string) *Result {
	result := &Result{Context: name}
	ctx, cancel := context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("no answer within %s: set --context-timeout", o.timeout))
	defer cancel()
	// A command that waits for a server that never answers may not notice that it is to end.
	type ended struct {
		status      int
		err         error
		out, errOut bytes.Buffer
	}
	done := make(chan *ended, 1)
	go func() {
		e := &ended{}
		cmd := o.build()
		cmd.SetArgs(args)
		cmd.SetIn(bytes.NewReader(stdin))
		cmd.SetOut(&e.out)
		cmd.SetErr(&e.errOut)
		cmd.SilenceUsage = true
		e.status = cli.Execute(ctx, cmd, func(err error) { e.err = err })
		done <- e
	}()
	select {
	case <-ctx.Done():
		result.Status, result.Error = 1, context.Cause(ctx).Error()
		return result
	case e := <-done:
		result.Status, result.text = e.status, e.out.Bytes()
		for line := range strings.Lines(e.errOut.String()) {
			result.Notes = append(result.Notes, strings.TrimRight(line, "\n"))
		}
		if e.err != nil {
			result.Error = e.err.Error()
			if ctx.Err() != nil {
				result.Error = context.Cause(ctx).Error()
			}
		}
	}
	if format != cli.TextOrJSON[0] && len(result.text) > 0 {
		if err := decode(result.text, format, &result.Result); err != nil && result.Error == "" {
			result.Status, result.Error = 1, err.Error()
		}
	}
	return result
}

// decode keeps numbers as they were printed.
func decode(document []byte, format string, into *any) error {
	if format == "yaml" {
		converted, err := yaml.YAMLToJSON(document)
		if err != nil {
			return err
		}
		document = converted
	}
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	return decoder.Decode(into)
}

func printText(out, errOut io.Writer, results []*Result) error {
	for i, r := range results {
		if i > 0 {
			_, _ = fmt.Fprintln(out)
		}
		if _, err := io.WriteString(out, manifest.Sprintf("==> %s <==\n", r.Context)); err != nil {
			return err
		}
		for _, note := range r.Notes {
			manifest.Note(errOut, "%s: %s", r.Context, note)
		}
		if _, err := out.Write(r.text); err != nil {
			return err
		}
		if r.Error != "" {
			_, _ = io.WriteString(out, manifest.Sprintf("not read: %s\n", r.Error))
		}
	}
	return nil
}

// byWeight are exit statuses, those that are about more after others.
var byWeight = []int{0, int(cli.ExitPartly), int(cli.ExitFound), int(cli.ExitDenied), 1}

// status is an error if a cluster could not be read, and otherwise the weightiest exit status of all.
func status(results []*Result) error {
	var unread []string
	weightiest := 0
	for _, r := range results {
		if r.Error != "" {
			unread = append(unread, r.Context)
		}
		if slices.Index(byWeight, r.Status) > slices.Index(byWeight, weightiest) {
			weightiest = r.Status
		}
	}
	switch {
	case len(unread) > 0:
		return fmt.Errorf("%d of %s could not be read: %s", len(unread), cli.Count(len(results), "cluster", "clusters"), strings.Join(unread, ", "))
	case weightiest > 0:
		return cli.ExitStatus(weightiest)
	}
	return nil
}
