// SPDX-License-Identifier: Apache-2.0

// Command sallyport hosts admission webhooks for Kubernetes, and previews their effects.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/terminal"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// Exit statuses of every command: see [cli.ExitStatuses].
const (
	exitOK     = 0
	exitError  = 1
	exitFound  = int(cli.ExitFound)
	exitPartly = int(cli.ExitPartly)
	exitDenied = int(cli.ExitDenied)
)

func main() {
	title, args := asPlugin(os.Args[0], os.Args[1:])
	os.Exit(runAs(context.Background(), title, args, os.Stdin, os.Stdout, os.Stderr))
}

// run executes one command line and returns its exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return runAs(ctx, "", args, stdin, stdout, stderr)
}

// runAs is run for a program of the given name.
func runAs(ctx context.Context, title string, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	progress := terminal.NewProgress(stderr)
	defer progress.Stop()
	ctx, stdout, stderr = progress.With(ctx), progress.Before(stdout), progress.Before(stderr)
	cmd := newCommand()
	cmd.PersistentPreRun = func(cmd *cobra.Command, _ []string) {
		if output := cmd.Flags().Lookup("output"); output != nil && output.Value.String() != output.DefValue {
			progress.Stop() // its reader is a program
		}
	}
	setTitle(cmd, title)
	cmd.SetArgs(args)
	cmd.SetIn(stdin)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	return cli.Execute(ctx, cmd, func(err error) {
		var lines []string
		for _, one := range manifest.SplitErrors(err) {
			lines = append(lines, manifest.Sprintf("%s", strings.ReplaceAll(one.Error(), "\n\t", "\n  ")))
		}
		_, _ = fmt.Fprintln(stderr, "sallyport:", strings.Join(lines, "\n"))
	})
}

type exitStatus = cli.ExitStatus
