// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/sallyport-io/sallyport/internal/cli"
)

var colorChoices = []string{"auto", "always", "never"}

// useColor reports whether to color the output, given one of colorChoices. It respects
// NO_COLOR (no-color.org).
func useColor(choice string, out io.Writer) bool {
	switch choice {
	case "always":
		return true
	case "never":
		return false
	}
	file, ok := out.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(file.Fd()))
}

// textOrJSON are the output formats of most commands.
var textOrJSON = []string{"text", "json"}

// addOutputFlag adds --output, which defaults to the first choice.
func addOutputFlag(cmd *cobra.Command, output *string, choices []string) {
	addFlagGroup(cmd, "Output", func() {
		cmd.Flags().StringVarP(output, "output", "o", choices[0], "`format` of the output: "+cli.OneOf(choices))
		cli.CompleteChoices(cmd, "output", choices)
	})
}

// interruptible runs a command until it ends or is interrupted.
func interruptible(run func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
		defer stop()
		return run(ctx, cmd, args)
	}
}
