// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/internal/cli/terminal"
)

// ColorChoices are the values of a flag for color.
var ColorChoices = []string{"auto", "always", "never"}

// UseColor reports whether to color the output, given one of ColorChoices. It respects
// NO_COLOR (no-color.org).
func UseColor(choice string, out io.Writer) bool {
	switch choice {
	case "always":
		return true
	case "never":
		return false
	}
	return os.Getenv("NO_COLOR") == "" && terminal.Is(out)
}

// AddColorFlag adds --color; what is what it colors.
func AddColorFlag(cmd *cobra.Command, color *string, what string) {
	cmd.Flags().StringVar(color, "color", ColorChoices[0], "`when` to color "+what+": "+OneOf(ColorChoices))
	CompleteChoices(cmd, "color", ColorChoices)
}

// A Text is the output of a command in one of several formats, of which the first is text for people.
type Text struct{ Format, Color string }

// AddFlags adds --output with the formats and, for the text, --color.
func (t *Text) AddFlags(cmd *cobra.Command, formats []string) {
	AddOutputFlag(cmd, &t.Format, formats)
	AddFlagGroup(cmd, "Output", func() { AddColorFlag(cmd, &t.Color, "the text") })
}

// Validate checks the flags.
func (t *Text) Validate(formats []string) error {
	return errors.Join(Choice("output", t.Format, formats), Choice("color", t.Color, ColorChoices))
}

// Screen is where the text of a command is printed.
func (t *Text) Screen(cmd *cobra.Command) *terminal.Screen {
	out := cmd.OutOrStdout()
	return terminal.NewScreen(out, UseColor(t.Color, out))
}

// Confirm asks a question that a line with "y" or "yes" affirms. Any other answer, and the
// end of the input, is a no.
func Confirm(in io.Reader, out io.Writer, question string) (bool, error) {
	if _, err := io.WriteString(out, question+" [y/N] "); err != nil {
		return false, err
	}
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes", nil
}

// TextOrJSON are the output formats of most commands.
var TextOrJSON = []string{"text", "json", "yaml"}

// AddOutputFlag adds --output, which defaults to the first choice.
func AddOutputFlag(cmd *cobra.Command, output *string, choices []string) {
	AddFlagGroup(cmd, "Output", func() {
		cmd.Flags().StringVarP(output, "output", "o", choices[0], "`format` of the output: "+OneOf(choices))
		CompleteChoices(cmd, "output", choices)
	})
}

// Interruptible runs a command until it ends or is interrupted.
func Interruptible(run func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
		defer stop()
		return run(ctx, cmd, args)
	}
}
