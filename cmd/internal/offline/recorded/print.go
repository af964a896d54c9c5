// SPDX-License-Identifier: Apache-2.0

package recorded

import (
	"fmt"
	"io"
	"strings"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// Print prints a result for people: the largest groups first.
func (r *Result) Print(out io.Writer) error {
	var text strings.Builder
	for _, g := range r.Groups {
		fmt.Fprintf(&text, "%d × %s", g.Count, g.Kind)
		if g.Webhook != "" {
			fmt.Fprintf(&text, " (%s)", manifest.PrintableLine(g.Webhook))
		}
		fmt.Fprintf(&text, ": %s\n", cli.OneLine(g.Detail))
		for _, example := range g.Examples {
			fmt.Fprintf(&text, "    %s\n", manifest.PrintableLine(example))
		}
		if more := g.Count - len(g.Examples); more > 0 {
			fmt.Fprintf(&text, "    and %d more\n", more)
		}
	}
	if len(r.Groups) > 0 {
		text.WriteByte('\n')
	}
	fmt.Fprintf(&text, "%s replayed: %d decided as before, %d differently", cli.Count(r.Replayed, "request", "requests"), r.Same, r.Different)
	if r.Undecided > 0 {
		fmt.Fprintf(&text, "; %d without a recorded decision: compare with --before-config or --before-with", r.Undecided)
	}
	text.WriteByte('\n')
	if why := r.why(); why != "" {
		fmt.Fprintf(&text, "not replayed%s\n", why)
	}
	_, err := io.WriteString(out, manifest.Printable(text.String()))
	return err
}
